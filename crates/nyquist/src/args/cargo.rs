//! The arguments of `cargo nyquist`: cargo's own options, and those of `nyquist record`.

use crate::args::RecordArgs;
use crate::args::quantity::whole;
use crate::args::typed_options::TypedOptions;
use crate::args::usage_error::refused;
use crate::failure::Failure;
use clap::builder::Resettable;
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, CommandFactory as _, FromArgMatches, Parser, Subcommand,
    ValueHint,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Build with optimisation and debug info, record, and show where the time goes.
///
/// Nothing is written to Cargo.toml: the profile's settings are overridden on cargo's command line.
#[derive(Debug, Parser)]
#[command(
    name = "cargo-nyquist",
    display_name = "cargo-nyquist",
    bin_name = "cargo nyquist",
    version,
    propagate_version = true
)]
#[command(override_usage = "cargo nyquist [OPTIONS] [-- ARGS...]
       cargo nyquist <COMMAND> [OPTIONS]")]
#[command(after_help = "`cargo nyquist run --help` shows all options.

Examples:
  cargo nyquist                              Build and record the package's program
  cargo nyquist --bin server -- --port 80    One of several programs, with its own arguments
  cargo nyquist example demo                 An example
  cargo nyquist bench sorting                The benchmarks whose name contains `sorting`
  cargo nyquist test parser::deep_nesting    One test
  cargo nyquist run -s -o before.json.gz     Save the profile without showing it")]
pub(crate) struct CargoCli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: CargoCommand,
}

/// The subcommands of `cargo nyquist`.
#[derive(Debug, Subcommand)]
pub(crate) enum CargoCommand {
    /// Build a program and record it; `cargo nyquist` alone does this too
    Run(RunArgs),
    /// Build an example and record it
    Example(ExampleArgs),
    /// Build a benchmark and record it
    Bench(BenchArgs),
    /// Build the tests and record one of them
    Test(TestArgs),
    /// Print a completion script of cargo-nyquist for a shell
    #[command(after_help = "Examples:
  cargo nyquist completions zsh > ~/.zfunc/_cargo-nyquist    For a folder of fpath
  nyquist setup --user                       Install those of bash, zsh and fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Report how cargo would run a program, without running it: cargo calls this in the program's place
    #[command(hide = true)]
    Launch {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<OsString>,
    },
}

/// `cargo nyquist run`
#[derive(Debug, Args)]
#[command(override_usage = "cargo nyquist [run] [OPTIONS] [--] [ARGS...]")]
#[command(after_help = "Examples:
  cargo nyquist                              Build and record the package's program
  cargo nyquist --bin server -- --port 80    One of several programs, with its own arguments
  cargo nyquist run -s -o before.json.gz     Save the profile without showing it")]
pub(crate) struct RunArgs {
    /// Record this program of the package
    #[arg(long, value_name = "NAME", conflicts_with_all = ["example", "bench", "test"])]
    pub(crate) bin: Option<String>,
    /// Record this example (as `cargo nyquist example NAME`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bench", "test"])]
    pub(crate) example: Option<String>,
    /// Record this benchmark (as `cargo nyquist bench --bench NAME`)
    #[arg(long, value_name = "NAME", conflicts_with = "test")]
    pub(crate) bench: Option<String>,
    /// Record a test of this file of tests (as `cargo nyquist test --test NAME`)
    #[arg(long, value_name = "NAME")]
    pub(crate) test: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The program's own arguments
    #[arg(trailing_var_arg = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
}

/// `cargo nyquist example`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo nyquist example demo                 Build and record the example `demo`
  cargo nyquist example demo -- --size 9     With its own arguments")]
pub(crate) struct ExampleArgs {
    /// The example; needed where there are several
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The example's own arguments
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
}

/// `cargo nyquist bench`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo nyquist bench                        All benchmarks
  cargo nyquist bench sorting                Those whose name contains `sorting`
  cargo nyquist bench --bench parse -s       Those of one file, without showing the profile")]
pub(crate) struct BenchArgs {
    /// Only the benchmarks whose name contains this
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// The file of benchmarks; needed where there are several
    #[arg(long, value_name = "NAME", conflicts_with = "lib")]
    pub(crate) bench: Option<String>,
    /// The benchmarks inside the library
    #[arg(long)]
    pub(crate) lib: bool,
    /// How long each benchmark of Criterion runs, without its analysis
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = |text: &str| whole::<u32>(text, 1..=u32::MAX))]
    pub(crate) profile_time: u32,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The benchmark's own arguments
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
}

/// `cargo nyquist test`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo nyquist test parser::deep_nesting    One test
  cargo nyquist test --test speed large      One of the file tests/speed.rs")]
pub(crate) struct TestArgs {
    /// The test's name, or a part of it that no other test's name has
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Only the tests of this file in `tests`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["lib", "bin"])]
    pub(crate) test: Option<String>,
    /// Only the tests inside the library
    #[arg(long, conflicts_with = "bin")]
    pub(crate) lib: bool,
    /// Only the tests inside this program
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The tests' own arguments
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
}

/// The options of all of them.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Print the commands, and run none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Build with frame pointers, in addition to your own flags for rustc
    #[arg(long)]
    pub(crate) frame_pointers: bool,
    #[command(flatten)]
    pub(crate) build: BuildArgs,
    #[command(flatten)]
    pub(crate) cargo: CargoArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgv,
}

/// Cargo's options that this program has to know itself.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of cargo")]
pub(crate) struct BuildArgs {
    /// The profile to build with (default: release; bench for benchmarks)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Build with the profile `release`, which is the default
    #[arg(short, long, conflicts_with = "profile")]
    pub(crate) release: bool,
}

/// Cargo's options that are only passed on.
fn passed_on() -> Vec<Arg> {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        let value_parser = clap::value_parser!(OsString);
        Arg::new(name)
            .long(name)
            .value_name(value)
            .action(ArgAction::Append)
            .value_parser(value_parser)
            .help(help)
    };
    let options = vec![
        option("package", "SPEC", "The package to build").short('p'),
        option("features", "FEATURES", "Features to switch on").short('F'),
        flag("all-features", "Switch on all features"),
        flag("no-default-features", "Switch off the default features"),
        option("target", "TRIPLE", "Build for this target"),
        option("target-dir", "DIR", "The folder to build in").value_hint(ValueHint::DirPath),
        option("manifest-path", "PATH", "The Cargo.toml").value_hint(ValueHint::FilePath),
        option("jobs", "N", "How many jobs run at once").short('j').allow_negative_numbers(true),
        option("config", "KEY=VALUE", "Override a value of cargo's configuration"),
        Arg::new("Z").short('Z').value_name("FLAG").action(ArgAction::Append).help("Unstable flags of cargo"),
        flag("ignore-rust-version", "Ignore the `rust-version` of packages"),
        flag("locked", "Require that Cargo.lock stays as it is"),
        flag("offline", "Run without the network"),
        flag("frozen", "As --locked and --offline"),
    ];
    options.into_iter().map(|arg| arg.help_heading("Options of cargo")).collect()
}

/// Options of cargo, as they were typed.
#[derive(Clone, Debug)]
pub(crate) struct CargoArgs(TypedOptions);

impl CargoArgs {
    /// All of them.
    pub(crate) fn all(&self) -> Vec<OsString> {
        self.0.argv(None).collect()
    }

    /// Those that say where the packages are and how cargo is configured, which all of cargo's commands know.
    pub(crate) fn general(&self) -> Vec<OsString> {
        self.0.only(&["manifest-path", "config", "Z", "locked", "offline", "frozen"])
    }

    /// Those that configure cargo.
    pub(crate) fn configuration(&self) -> Vec<OsString> {
        self.0.only(&["config", "Z"])
    }

    /// The packages that are named.
    pub(crate) fn packages(&self) -> Vec<String> {
        self.0.values("package").map(|value| value.to_string_lossy().into_owned()).collect()
    }

    /// The target folder that is named.
    pub(crate) fn target_folder(&self) -> Option<PathBuf> {
        self.0.values("target-dir").next().map(PathBuf::from)
    }

    /// The targets that are named.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.0.values("target").map(|value| value.to_string_lossy().into_owned()).collect()
    }
}

impl FromArgMatches for CargoArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(TypedOptions::collect(passed_on(), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for CargoArgs {
    fn augment_args(command: Command) -> Command {
        command.args(passed_on())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Options of `nyquist record`, as they were typed.
#[derive(Clone, Debug)]
pub(crate) struct RecordArgv(TypedOptions);

impl RecordArgv {
    /// The words for a recorder that runs in `folder`, when they were typed in `typed_in`. The profile is
    /// saved where they were typed.
    pub(crate) fn argv(&self, typed_in: &Path, folder: &Path) -> Vec<OsString> {
        if typed_in == folder {
            return self.0.argv(None).collect();
        }
        let mut argv: Vec<_> = self.0.argv(Some(typed_in)).collect();
        if !self.0.has("output") {
            argv.extend(["--output".into(), typed_in.join(default_output()).into_os_string()]);
        }
        argv
    }

    /// Whether only errors are printed.
    pub(crate) fn quiet(&self) -> bool {
        self.0.has("quiet")
    }
}

/// Where `nyquist record` saves by default.
fn default_output() -> OsString {
    let output = record_options().into_iter().find(|arg| arg.get_id() == "output");
    let default =
        output.and_then(|arg| arg.get_default_values().first().map(|value| OsString::from(&**value)));
    default.unwrap_or_default()
}

/// The options of `nyquist record` that make sense for a program that is built first.
fn record_options() -> Vec<Arg> {
    /// The target is always the built program.
    const NOT_HERE: [&str; 6] = ["command", "pid", "tid", "name", "all_cpus", "cgroup"];
    /// Letters that mean something else to cargo.
    const CARGOS: [char; 5] = ['r', 'F', 'p', 'j', 'Z'];
    let record = RecordArgs::augment_args(Command::new("record"));
    let options = record.get_arguments().filter(|arg| !NOT_HERE.contains(&arg.get_id().as_str()));
    let adapted = options.cloned().map(|arg| {
        let aliases = arg.get_all_short_aliases().unwrap_or_default();
        let clashes = aliases.iter().chain(&arg.get_short()).any(|letter| CARGOS.contains(letter));
        let arg = if clashes { arg.short(Resettable::Reset).short_alias(Resettable::Reset) } else { arg };
        arg.help_heading("Options of nyquist record")
    });
    adapted.collect()
}

impl FromArgMatches for RecordArgv {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(TypedOptions::collect(record_options(), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RecordArgv {
    fn augment_args(command: Command) -> Command {
        command.args(record_options())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Reads the words after `cargo nyquist`.
pub(crate) fn parse(argv: Vec<OsString>) -> Result<CargoCli, Failure> {
    let argv = with_subcommand(argv);
    let named = std::iter::once("cargo nyquist".into()).chain(argv.iter().cloned());
    CargoCli::try_parse_from(named).map_err(|error| refused(&error, &CargoCli::command(), &argv))
}

/// The words; where they name no subcommand, they are those of `run`.
fn with_subcommand(argv: Vec<OsString>) -> Vec<OsString> {
    let global = ["-h", "--help", "-V", "--version"];
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let names_none =
        argv.first().is_none_or(|word| is_option(word) && !global.iter().any(|name| word == name));
    names_none.then(|| OsString::from("run")).into_iter().chain(argv).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> CargoCommand {
        parse(line.split_whitespace().map(OsString::from).collect()).unwrap().command
    }

    fn run(line: &str) -> RunArgs {
        match parsed(line) {
            CargoCommand::Run(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        CargoCli::command().debug_assert();
    }

    #[test]
    fn without_a_subcommand_it_is_run() {
        assert_eq!(run("--bin a -- x -y").args, ["x", "-y"]);
        assert_eq!(run("run --bin a x -y").bin.unwrap(), "a");
        assert!(run("").args.is_empty());
        assert!(parse(vec!["benhc".into()]).is_err(), "a mistyped subcommand is not the program's argument");
        assert_eq!(with_subcommand(vec!["--help".into()]), ["--help"]);
    }

    #[test]
    fn options_go_to_whom_they_belong() {
        let common = run("-p a -F x,y -r --rate 500 -j 3 -s -Zfoo -d 2 --config a=1 --symbol-dir d:e").common;
        assert_eq!(
            common.cargo.all(),
            ["--package", "a", "--features", "x,y", "--jobs", "3", "--config", "a=1", "-Z", "foo"]
        );
        assert_eq!(common.cargo.general(), ["--config", "a=1", "-Z", "foo"]);
        assert_eq!(
            common.record.argv(Path::new("/w"), Path::new("/w")),
            ["--rate", "500", "--duration", "2", "--save-only", "--symbol-dir", "d", "--symbol-dir", "e"]
        );
        assert!(common.build.release && !common.record.quiet());
    }

    #[test]
    fn files_stay_where_they_were_requested() {
        let argv = |line| run(line).common.record.argv(Path::new("/typed"), Path::new("/runs"));
        let typed = |name: &str| Path::new("/typed").join(name).display().to_string();
        assert_eq!(argv("-o a.gz"), ["--output", &typed("a.gz")]);
        assert_eq!(argv("-o /a.gz"), ["--output", "/a.gz"]);
        assert_eq!(argv("-o -"), ["--output", "-"]);
        assert_eq!(argv("-q"), ["--quiet", "--output", &typed("profile.json.gz")]);
    }

    #[test]
    fn a_pid_cannot_be_built() {
        assert!(parse(vec!["run".into(), "--pid".into(), "3".into()]).is_err());
    }
}
