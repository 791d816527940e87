//! Translates samply's options to arguments of `nyquist`. Options without an equivalent are refused with a
//! message.

use super::definition::{
    ImportArgs, LoadArgs, ProfileArgs, RecordArgs, SamplyCommand, ServerArgs, SymbolArgs,
};
use crate::failure::Failure;
use crate::printer::Printer;
use std::ffi::OsString;

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
    pub(super) fn argv(self, printer: Printer) -> Result<Vec<OsString>, Failure> {
        match self {
            Self::Record(args) => args.argv(printer),
            Self::Load(args) => args.argv(),
            Self::Import(args) => args.argv(printer),
            Self::Setup { .. } => {
                Err(Failure::new("`samply setup` signs the program, which only macOS requires")
                    .hint("on Linux nothing needs to be set up; `nyquist record` says what would give more"))
            }
        }
    }
}

impl RecordArgs {
    fn argv(self, printer: Printer) -> Result<Vec<OsString>, Failure> {
        let not_here =
            [(self.coreclr.is_some(), "--coreclr"), (self.gfx, "--gfx"), (self.browsers, "--browsers")];
        for (set, option) in not_here {
            without(set, option, "its events are those of Windows", printer);
        }
        let mut argv = Words::of("record");
        // A rate below 1 Hz becomes 1 Hz, the lowest possible rate.
        argv.option("--rate", format!("{:.0}", self.rate.max(1.0)));
        if let Some(seconds) = self.duration {
            argv.option("--duration", seconds.to_string());
        }
        argv.flag("--all-cpus", self.all);
        if let Some(pid) = self.pid {
            argv.option("--pid", pid.to_string());
        } else if !self.all {
            argv.option("--iteration-count", self.iteration_count.to_string());
        }
        argv.flag("--ignore-exit-code", self.ignore_exit_code);
        // Readers of samply's profiles know this version.
        argv.option("--profile-version", "49");
        argv.option("--include-args", self.profile.include_args.to_string());
        argv.flag("--unlink-aux-files", self.profile.unlink_aux_files);
        self.profile.add(&mut argv);
        self.server.add(&mut argv)?;
        self.symbols.add(&mut argv);
        // samply serves its profile wherever it runs.
        argv.flag("--serve", !self.profile.save_only);
        if !self.command.is_empty() {
            argv.0.push("--".into());
            argv.0.extend(self.command);
        }
        Ok(argv.0)
    }
}

impl LoadArgs {
    fn argv(self) -> Result<Vec<OsString>, Failure> {
        let mut argv = Words::of("load");
        self.server.add(&mut argv)?;
        self.symbols.add(&mut argv);
        argv.0.extend(["--".into(), self.file.into_os_string()]);
        Ok(argv.0)
    }
}

impl ImportArgs {
    fn argv(self, printer: Printer) -> Result<Vec<OsString>, Failure> {
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
        let mut argv = Words::of("import");
        argv.option("--profile-version", "49");
        for folder in &self.aux_file_dir {
            argv.option("--aux-file-dir", folder);
        }
        if let Some(architecture) = &self.override_arch {
            argv.option("--override-arch", architecture);
        }
        for name in &self.name {
            printer.detail(format_args!("--name {name} takes processes and threads of exactly this name"));
            argv.option("--name", name);
        }
        for pid in &self.pid {
            argv.option("--pid", pid.to_string());
        }
        if let Some(range) = &self.time_range {
            argv.option("--time-range", range);
        }
        self.profile.add(&mut argv);
        self.server.add(&mut argv)?;
        self.symbols.add(&mut argv);
        argv.0.extend(["--".into(), self.file.into_os_string()]);
        Ok(argv.0)
    }
}

impl ProfileArgs {
    /// The options that recording and importing share.
    fn add(&self, argv: &mut Words) {
        if let Some(name) = &self.profile_name {
            argv.option("--profile-name", name);
        }
        argv.option("--output", &self.output);
        for (flag, set) in [
            ("--main-thread-only", self.main_thread_only),
            ("--reuse-threads", self.reuse_threads),
            ("--fold-recursive-prefix", self.fold_recursive_prefix),
            ("--per-cpu-threads", self.per_cpu_threads),
            ("--save-only", self.save_only),
            ("--cswitch-markers", self.cswitch_markers),
            ("--jit-markers", self.jit_markers),
        ] {
            argv.flag(flag, set);
        }
    }
}

impl ServerArgs {
    fn add(&self, argv: &mut Words) -> Result<(), Failure> {
        argv.flag("--no-open", self.no_open);
        // Callers of samply expect its page.
        argv.option("--ui", "firefox");
        argv.flag("--verbose", self.verbose);
        argv.option("--address", &self.address);
        match self.port.as_str() {
            "3000+" => {}
            port if port.ends_with('+') => {
                return Err(Failure::new(format!(
                    "`--port {port}` is not supported: only `3000+` searches for a free port"
                ))
                .hint("give one port, or leave the option out"));
            }
            port => argv.option("--port", port),
        }
        Ok(())
    }
}

impl SymbolArgs {
    fn add(&self, argv: &mut Words) {
        for folder in &self.symbol_dir {
            argv.option("--symbol-dir", folder);
        }
        if let Some(folder) = &self.simpleperf_binary_cache {
            argv.option("--simpleperf-binary-cache", folder);
        }
        for (option, values) in [
            ("--windows-symbol-server", &self.windows_symbol_server),
            ("--breakpad-symbol-server", &self.breakpad_symbol_server),
        ] {
            for value in values {
                argv.option(option, value);
            }
        }
        let folders = [
            ("--windows-symbol-cache", self.windows_symbol_cache.as_slice()),
            ("--breakpad-symbol-dir", &self.breakpad_symbol_dir),
            ("--breakpad-symbol-cache", self.breakpad_symbol_cache.as_slice()),
        ];
        for (option, values) in folders {
            for value in values {
                argv.option(option, value);
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
