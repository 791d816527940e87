//! samply's command line, for the scripts and tools that call it: taken when this program is called under the name
//! `samply`.
//!
//! The options are those of samply 0.13, with its letters and defaults, and those that its later versions have added.
//! Each becomes the option of `nyquist` that does the same, or says why it cannot.

use crate::args::refusal::refused;
use crate::args::{Cli, Verbosity};
use crate::failure::Failure;
use crate::printer::Printer;
use clap::error::ContextKind;
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A sampling CPU profiler: nyquist, with samply's options.
#[derive(Debug, Parser)]
#[command(name = "samply", version = concat!("0.13.1 (nyquist ", env!("CARGO_PKG_VERSION"), ")"))]
pub(crate) struct SamplyCli {
    #[command(subcommand)]
    command: SamplyCommand,
}

#[derive(Debug, Subcommand)]
enum SamplyCommand {
    /// Record a profile and display it
    Record(Box<RecordArgs>),
    /// Load a profile from a file and display it
    Load(Box<LoadArgs>),
    /// Import a perf.data file and display the profile
    Import(Box<ImportArgs>),
    /// Sign the program, which only macOS needs
    Setup {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of samply's")]
struct RecordArgs {
    /// Sampling rate, in Hz
    #[arg(short, long, default_value = "1000")]
    rate: f64,
    /// Limit the recorded time to so many seconds
    #[arg(short, long)]
    duration: Option<f64>,
    /// How many times to run the command
    #[arg(long, default_value_t = 1)]
    iteration_count: u32,
    /// Go on when a run fails
    #[arg(short, long)]
    ignore_exit_code: bool,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    /// Attach to this process
    #[arg(short, long)]
    pid: Option<u32>,
    /// Profile the whole system
    #[arg(short, long, conflicts_with = "pid")]
    all: bool,
    /// Keep Linux context switches (Windows: CoreCLR events)
    #[arg(long, num_args = 0.., require_equals = true)]
    coreclr: Option<Vec<String>>,
    /// Graphics events of Windows
    #[arg(long)]
    gfx: bool,
    /// Events of browsers on Windows
    #[arg(long)]
    browsers: bool,
    /// The command, with its environment before it
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct LoadArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    /// The profile
    file: PathBuf,
}

#[derive(Debug, Args)]
struct ImportArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    /// Also look for jitdumps and marker files there
    #[arg(long)]
    aux_file_dir: Vec<PathBuf>,
    /// Only processes whose name contains this
    #[arg(long)]
    name: Vec<String>,
    /// Only these processes
    #[arg(long)]
    pid: Vec<u32>,
    /// Only this time
    #[arg(long)]
    time_range: Option<String>,
    /// The architecture of the profile
    #[arg(long)]
    override_arch: Option<String>,
    /// CoreCLR events of Windows
    #[arg(long, num_args = 0.., require_equals = true)]
    coreclr: Option<Vec<String>>,
    /// The recording
    file: PathBuf,
    /// ETL files of user sessions on Windows
    user_etl: Vec<PathBuf>,
}

/// How a profile is made.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of samply's")]
struct ProfileArgs {
    /// The profile's name
    #[arg(long, allow_hyphen_values = true)]
    profile_name: Option<String>,
    /// Only the main thread of each process
    #[arg(long)]
    main_thread_only: bool,
    /// Merge threads of the same name that do not overlap
    #[arg(long)]
    reuse_threads: bool,
    /// Fold repeated frames at the base of the stack
    #[arg(long)]
    fold_recursive_prefix: bool,
    /// Remove jitdumps when they have been opened
    #[arg(long)]
    unlink_aux_files: bool,
    /// Add a thread for each CPU
    #[arg(long)]
    per_cpu_threads: bool,
    /// A marker for each function that is made just in time
    #[arg(long)]
    jit_markers: bool,
    /// A marker for each context switch
    #[arg(long)]
    cswitch_markers: bool,
    /// Put so many arguments into the names of processes
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = 0, default_missing_value = "100")]
    include_args: usize,
    /// Put symbols into the profile, which always happens
    #[arg(long = "presymbolicate", alias = "unstable-presymbolicate")]
    _presymbolicate: bool,
    /// Do not serve the profile afterwards
    #[arg(short, long)]
    save_only: bool,
    /// Where to save
    #[arg(short, long, default_value = "profile.json.gz")]
    output: PathBuf,
}

/// How a profile is shown.
#[derive(Debug, Args)]
struct ServerArgs {
    /// Do not open a browser
    #[arg(short, long)]
    no_open: bool,
    /// The address of the local server
    #[arg(long, default_value = "127.0.0.1")]
    address: String,
    /// The port of the local server; 3000+ is the first free one from there on
    #[arg(short = 'P', long, default_value = "3000+")]
    port: String,
    /// Say more
    #[arg(short, long, action = ArgAction::SetTrue)]
    verbose: bool,
}

/// Where symbols come from.
#[derive(Debug, Args)]
struct SymbolArgs {
    /// Folders with symbol files
    #[arg(long)]
    symbol_dir: Vec<PathBuf>,
    /// Servers of symbols for Windows
    #[arg(long)]
    windows_symbol_server: Vec<String>,
    /// Where files from these are kept
    #[arg(long)]
    windows_symbol_cache: Option<PathBuf>,
    /// Servers of Breakpad symbols
    #[arg(long)]
    breakpad_symbol_server: Vec<String>,
    /// Folders of Breakpad symbols
    #[arg(long)]
    breakpad_symbol_dir: Vec<PathBuf>,
    /// Where files from these are kept
    #[arg(long)]
    breakpad_symbol_cache: Option<PathBuf>,
    /// The folder that simpleperf's scripts fill
    #[arg(long)]
    simpleperf_binary_cache: Option<PathBuf>,
}

/// Whether a program that was called like this was called as samply.
pub(crate) fn is_samply(called_as: &OsString) -> bool {
    Path::new(called_as).file_name().is_some_and(|name| name == "samply")
}

/// Reads samply's words as nyquist's. What is asked for and cannot be done is said.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, Failure> {
    let typed: Vec<_> = words.collect();
    let refused = |error| refused(&error, &SamplyCli::command(), &typed[1..]);
    let samply = SamplyCli::try_parse_from(&typed).map_err(refused)?;
    let words = samply.command.words(Printer::new(Verbosity::default()))?;
    Cli::try_parse_from(words).map_err(|mut error| {
        // The form of nyquist's words is not that of samply's.
        error.remove(ContextKind::Usage);
        refused(error)
    })
}

/// nyquist's words.
struct Words(Vec<OsString>);

impl Words {
    fn of(subcommand: &str) -> Self {
        Self(vec!["nyquist".into(), subcommand.into()])
    }

    fn flag(&mut self, flag: &str, set: bool) {
        if set {
            self.0.push(flag.into());
        }
    }

    /// An option with its value in the same word, which may begin with a dash.
    fn option(&mut self, option: &str, value: impl Into<OsString>) {
        let mut word = OsString::from(format!("{option}="));
        word.push(value.into());
        self.0.push(word);
    }
}

impl SamplyCommand {
    fn words(self, printer: Printer) -> Result<Vec<OsString>, Failure> {
        match self {
            Self::Record(args) => args.words(printer),
            Self::Load(args) => args.words(),
            Self::Import(args) => args.words(printer),
            Self::Setup { .. } => {
                Err(Failure::new("`samply setup` signs the program, which only macOS asks for")
                    .hint("on Linux nothing needs to be set up; `nyquist record` says what would give more"))
            }
        }
    }
}

impl RecordArgs {
    fn words(self, printer: Printer) -> Result<Vec<OsString>, Failure> {
        let not_here =
            [(self.coreclr.is_some(), "--coreclr"), (self.gfx, "--gfx"), (self.browsers, "--browsers")];
        for (set, option) in not_here {
            without(set, option, "its events are those of Windows", printer);
        }
        let mut words = Words::of("record");
        // A rate below 1 Hz rounds to the lowest that there is.
        words.option("--rate", format!("{:.0}", self.rate.max(1.0)));
        if let Some(seconds) = self.duration {
            words.option("--duration", seconds.to_string());
        }
        words.flag("--all-cpus", self.all);
        if let Some(pid) = self.pid {
            words.option("--pid", pid.to_string());
        } else if !self.all {
            words.option("--iteration-count", self.iteration_count.to_string());
        }
        words.flag("--ignore-exit-code", self.ignore_exit_code);
        // What reads samply's profiles knows this version.
        words.option("--profile-version", "49");
        words.option("--include-args", self.profile.include_args.to_string());
        words.flag("--unlink-aux-files", self.profile.unlink_aux_files);
        self.profile.add(&mut words);
        self.server.add(&mut words)?;
        self.symbols.add(&mut words);
        // samply serves its profile wherever it runs.
        words.flag("--serve", !self.profile.save_only);
        if !self.command.is_empty() {
            words.0.push("--".into());
            words.0.extend(self.command);
        }
        Ok(words.0)
    }
}

impl LoadArgs {
    fn words(self) -> Result<Vec<OsString>, Failure> {
        let mut words = Words::of("load");
        self.server.add(&mut words)?;
        self.symbols.add(&mut words);
        words.0.extend(["--".into(), self.file.into_os_string()]);
        Ok(words.0)
    }
}

impl ImportArgs {
    fn words(self, printer: Printer) -> Result<Vec<OsString>, Failure> {
        let of_windows = "it is for recordings of Windows";
        without(self.coreclr.is_some(), "--coreclr", of_windows, printer);
        without(!self.user_etl.is_empty(), "a second file", of_windows, printer);
        without(self.profile.include_args > 0, "--include-args", "a recording has no arguments", printer);
        without(
            self.profile.unlink_aux_files,
            "--unlink-aux-files",
            "nothing of a recording is removed",
            printer,
        );
        let mut words = Words::of("import");
        words.option("--profile-version", "49");
        for folder in &self.aux_file_dir {
            words.option("--aux-file-dir", folder);
        }
        if let Some(architecture) = &self.override_arch {
            words.option("--override-arch", architecture);
        }
        for name in &self.name {
            printer.detail(format_args!("--name {name} takes processes and threads of exactly this name"));
            words.option("--name", name);
        }
        for pid in &self.pid {
            words.option("--pid", pid.to_string());
        }
        if let Some(range) = &self.time_range {
            words.option("--time-range", range);
        }
        self.profile.add(&mut words);
        self.server.add(&mut words)?;
        self.symbols.add(&mut words);
        words.0.extend(["--".into(), self.file.into_os_string()]);
        Ok(words.0)
    }
}

impl ProfileArgs {
    /// The options that recording and importing share.
    fn add(&self, words: &mut Words) {
        if let Some(name) = &self.profile_name {
            words.option("--profile-name", name);
        }
        words.option("--output", &self.output);
        for (flag, set) in [
            ("--main-thread-only", self.main_thread_only),
            ("--reuse-threads", self.reuse_threads),
            ("--fold-recursive-prefix", self.fold_recursive_prefix),
            ("--per-cpu-threads", self.per_cpu_threads),
            ("--save-only", self.save_only),
            ("--cswitch-markers", self.cswitch_markers),
            ("--jit-markers", self.jit_markers),
        ] {
            words.flag(flag, set);
        }
    }
}

impl ServerArgs {
    fn add(&self, words: &mut Words) -> Result<(), Failure> {
        words.flag("--no-open", self.no_open);
        // Callers of samply expect its page.
        words.option("--ui", "firefox");
        words.flag("--verbose", self.verbose);
        words.option("--address", &self.address);
        match self.port.as_str() {
            "3000+" => {}
            port if port.ends_with('+') => {
                return Err(Failure::new(format!(
                    "`--port {port}` cannot be done: only 3000+ looks for a free port"
                ))
                .hint("give one port, or leave the option out"));
            }
            port => words.option("--port", port),
        }
        Ok(())
    }
}

impl SymbolArgs {
    fn add(&self, words: &mut Words) {
        for folder in &self.symbol_dir {
            words.option("--symbol-dir", folder);
        }
        if let Some(folder) = &self.simpleperf_binary_cache {
            words.option("--simpleperf-binary-cache", folder);
        }
        for (option, values) in [
            ("--windows-symbol-server", &self.windows_symbol_server),
            ("--breakpad-symbol-server", &self.breakpad_symbol_server),
        ] {
            for value in values {
                words.option(option, value);
            }
        }
        let folders = [
            ("--windows-symbol-cache", self.windows_symbol_cache.as_slice()),
            ("--breakpad-symbol-dir", &self.breakpad_symbol_dir),
            ("--breakpad-symbol-cache", self.breakpad_symbol_cache.as_slice()),
        ];
        for (option, values) in folders {
            for value in values {
                words.option(option, value);
            }
        }
    }
}

/// Says that an option has no effect, and why.
fn without(set: bool, option: &str, why: &str, printer: Printer) {
    if set {
        printer.warn(format_args!("{option} has no effect: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, Ui};
    use nyquist_profile::firefox::FormatVersion;

    fn parsed(line: &str) -> Result<Command, Failure> {
        let words = std::iter::once("samply").chain(line.split_whitespace());
        parse(words.map(OsString::from)).map(|cli| cli.command)
    }

    fn record(line: &str) -> crate::args::RecordArgs {
        match parsed(line).unwrap() {
            Command::Record(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        SamplyCli::command().debug_assert();
    }

    #[test]
    fn only_the_name_counts() {
        let check = |path: &str, expected| assert_eq!(is_samply(&path.into()), expected, "{path}");
        check("samply", true);
        check("/opt/bin/samply", true);
        check("/samply/nyquist", false);
        check("cargo-samply", false);
    }

    #[test]
    fn defaults_are_samplys() {
        let args = record("record ls -l");
        assert_eq!(args.profile_version, FormatVersion::V49);
        assert_eq!((args.rate, args.runs.iteration_count), (1000, 1));
        assert!(args.serve && !args.save_only && !args.server.no_open);
        assert_eq!(args.server.ui, Ui::Firefox);
        assert_eq!(args.output, Path::new("profile.json.gz"));
        assert_eq!(args.command, ["ls", "-l"]);
        assert_eq!(args.server.port, None);
    }

    #[test]
    fn wrappers_are_understood() {
        assert!(record("record -a -d 3").target.all_cpus);
        let hotpath = record("record --pid 77 --save-only -o /tmp/hp.json.gz");
        assert_eq!(hotpath.target.pid, [77]);
        assert!(hotpath.save_only && !hotpath.serve);
        assert_eq!(hotpath.output, Path::new("/tmp/hp.json.gz"));
        let cargo_samply = record("record -- target/samply/app -s -p 3");
        assert_eq!(cargo_samply.command, ["target/samply/app", "-s", "-p", "3"]);
    }

    #[test]
    fn options_keep_their_meaning() {
        let args = record(
            "record -r 500.4 -d 1.5 -i --iteration-count 3 --include-args=2 --reuse-threads --per-cpu-threads \
             --main-thread-only --fold-recursive-prefix --cswitch-markers --jit-markers --unlink-aux-files --unstable-presymbolicate -n -P 3005 \
             --profile-name -x --symbol-dir /a:b -v A=1 ./app",
        );
        assert_eq!((args.rate, args.runs.iteration_count, args.runs.ignore_exit_code), (500, 3, true));
        assert_eq!(args.duration.unwrap().as_millis(), 1500);
        let shape = args.shape;
        assert_eq!(shape.include_args, 2);
        let rows = shape.rows;
        assert!(rows.reuse_threads && rows.per_cpu_threads && rows.main_thread_only);
        assert!(rows.fold_recursive_prefix && shape.unlink_aux_files);
        assert!(rows.cswitch_markers && rows.jit_markers);
        assert_eq!(args.profile_name.unwrap(), "-x");
        assert_eq!(args.server.port, Some(3005));
        assert!(args.server.no_open && args.verbosity.verbose);
        assert_eq!(args.command, ["A=1", "./app"]);
    }

    #[test]
    fn recordings_of_perf_are_imported() {
        let command =
            parsed("import -s --pid 3 --reuse-threads --include-args=2 -o p.json.gz perf.data").unwrap();
        let Command::Import(args) = command else { panic!("{command:?}") };
        assert_eq!(
            (args.file.as_path(), args.output.as_path()),
            (Path::new("perf.data"), Path::new("p.json.gz"))
        );
        assert_eq!(args.recording.pid, [3]);
        assert!(args.recording.rows.reuse_threads && args.save_only);
        assert_eq!(args.profile_version, FormatVersion::V49);
    }

    #[test]
    fn what_cannot_be_done_says_so() {
        for (line, word) in [("setup", "macOS"), ("load -P 4000+ x", "4000+")] {
            assert!(parsed(line).unwrap_err().message.contains(word), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_samplys_words() {
        let check = |line: &str, expected: &str, command: &str| {
            let failure = parsed(line).unwrap_err();
            assert_eq!((&*failure.message, failure.status), (expected, 2), "{line}");
            let help = format!("`{command} --help` lists the options and what they take");
            assert_eq!(failure.hints.last(), Some(&help), "{line}");
            assert!(!failure.hints.iter().any(|hint| hint.contains("nyquist")), "{line}");
        };
        check("record", "'<COMMAND>...' is missing", "samply record");
        check(
            "record -r x ls",
            "invalid value 'x' for '--rate <RATE>': not a number, such as 1.5",
            "samply record",
        );
        check("load --nonsense x", "there is no option '--nonsense'", "samply load");
        check("record -g ls", "there is no option '-g'", "samply record");
        check("record -a -p 1", "'--all' cannot be used with '--pid <PID>'", "samply record");
    }
}
