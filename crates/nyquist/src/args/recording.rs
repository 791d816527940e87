//! The options for recordings that all reading commands have, and which files each of them can be used with.

use crate::args::{RowArgs, TimeRange};
use clap::Args;
use nyquist_convert::SampleSelection;
use nyquist_convert::event::{Pid, Tid};
use nyquist_object::elf::Architecture;
use std::path::PathBuf;

/// Options for reading a recording that another program made. Not for saved profiles.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Of a recording (perf.data)")]
pub(crate) struct RecordingArgs {
    /// Only samples of this process (may be repeated)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only samples of this thread (may be repeated)
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<u32>,
    /// Only samples of processes and threads of this name (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Only samples between these times, counted from the first sample: 1.5s-2s, 200ms-, -3s
    #[arg(long, value_name = "FROM-TO", allow_hyphen_values = true)]
    pub(crate) time_range: Option<TimeRange>,
    /// Only samples on this CPU (may be repeated)
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(crate) cpu: Vec<u32>,
    /// Only samples of this event (may be repeated; default: the first clock or cycle counter); if the
    /// samples of another profiler's file have several values, this value, as alloc_space or jdk.ThreadPark
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Vec<String>,
    /// Only samples of a pprof or OpenTelemetry file that have this label, as method=GET, or of any value, as method
    /// (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,
    /// The profile's name (default: the recorded command's)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile_name: Option<String>,
    /// Look in this folder for jitdumps, perf maps and marker files that are not where they were (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub(crate) aux_file_dir: Vec<PathBuf>,
    /// The architecture that was recorded, where the recording does not say it: x86_64, x86, aarch64
    #[arg(long, value_name = "ARCH", value_parser = architecture)]
    pub(crate) override_arch: Option<Architecture>,
    /// Keep addresses, and look up no names
    #[arg(long)]
    pub(crate) no_symbols: bool,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
}

impl RecordingArgs {
    /// Which samples are requested.
    pub(crate) fn selection(&self) -> SampleSelection {
        SampleSelection {
            pids: self.pid.iter().copied().map(Pid).collect(),
            tids: self.tid.iter().copied().map(Tid).collect(),
            names: self.name.clone(),
            cpus: self.cpu.clone(),
            time: self.time_range.map(TimeRange::times),
        }
    }

    /// An option that was given and leaves samples out.
    pub(crate) fn selecting(&self) -> Option<&'static str> {
        self.given(|option| option.selects)
    }

    /// An option that was given and that traces of Windows lack the data for.
    pub(crate) fn not_for_traces(&self) -> Option<&'static str> {
        self.given(|option| !option.is_for_traces)
    }

    /// An option that was given and that saved profiles lack the data for. `has_events` says whether the
    /// profile has another value to choose with `--event`.
    pub(crate) fn not_for_profiles(&self, has_events: bool) -> Option<&'static str> {
        self.given(|option| match option.name {
            "--label" => false,
            "--event" => !has_events,
            _ => true,
        })
    }

    /// The first option that was given, of those that are meant.
    fn given(&self, is_meant: impl Fn(&RecordingOption) -> bool) -> Option<&'static str> {
        let mut options = OPTIONS.iter().filter(|option| is_meant(option));
        options.find(|option| (option.is_given)(self)).map(|option| option.name)
    }
}

/// An option of [`RecordingArgs`].
struct RecordingOption {
    name: &'static str,
    is_given: fn(&RecordingArgs) -> bool,
    /// Whether it leaves samples out.
    selects: bool,
    /// Whether it can be used with traces of Windows.
    is_for_traces: bool,
}

impl RecordingOption {
    /// An option for recordings of perf alone that leaves no sample out.
    const fn new(name: &'static str, is_given: fn(&RecordingArgs) -> bool) -> Self {
        Self { name, is_given, selects: false, is_for_traces: false }
    }

    const fn selecting(self) -> Self {
        Self { selects: true, ..self }
    }

    const fn for_traces(self) -> Self {
        Self { is_for_traces: true, ..self }
    }
}

/// All options of [`RecordingArgs`]. Messages name the first one that does not fit.
const OPTIONS: [RecordingOption; 17] = [
    RecordingOption::new("--pid", |args| !args.pid.is_empty()).selecting().for_traces(),
    RecordingOption::new("--tid", |args| !args.tid.is_empty()).selecting().for_traces(),
    RecordingOption::new("--name", |args| !args.name.is_empty()).selecting().for_traces(),
    RecordingOption::new("--time-range", |args| args.time_range.is_some()).selecting().for_traces(),
    RecordingOption::new("--cpu", |args| !args.cpu.is_empty()).selecting().for_traces(),
    RecordingOption::new("--event", |args| !args.event.is_empty()),
    RecordingOption::new("--label", |args| !args.label.is_empty()).selecting(),
    RecordingOption::new("--profile-name", |args| args.profile_name.is_some()).for_traces(),
    RecordingOption::new("--aux-file-dir", |args| !args.aux_file_dir.is_empty()),
    RecordingOption::new("--override-arch", |args| args.override_arch.is_some()),
    RecordingOption::new("--no-symbols", |args| args.no_symbols).for_traces(),
    RecordingOption::new("--reuse-threads", |args| args.rows.reuse_threads).for_traces(),
    RecordingOption::new("--fold-recursive-prefix", |args| args.rows.fold_recursive_prefix).for_traces(),
    RecordingOption::new("--per-cpu-threads", |args| args.rows.per_cpu_threads).for_traces(),
    RecordingOption::new("--main-thread-only", |args| args.rows.main_thread_only).for_traces(),
    RecordingOption::new("--cswitch-markers", |args| args.rows.cswitch_markers).for_traces(),
    RecordingOption::new("--jit-markers", |args| args.rows.jit_markers),
];

/// Reads the name of an architecture, in any of the spellings that kernels, compilers and Android have for it.
fn architecture(name: &str) -> Result<Architecture, String> {
    match name.to_ascii_lowercase().as_str() {
        "x86_64" | "x86-64" | "amd64" | "x64" => Ok(Architecture::X86_64),
        "x86" | "i386" | "i686" => Ok(Architecture::X86),
        "aarch64" | "arm64" => Ok(Architecture::Aarch64),
        _ => Err("the registers of x86_64, x86 and aarch64 are known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};

    #[test]
    fn the_list_has_all_options_in_their_order() {
        let command = RecordingArgs::augment_args(clap::Command::new("x"));
        let defined = command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
        assert_eq!(defined.collect::<Vec<_>>(), OPTIONS.map(|option| option.name.to_owned()));
    }

    #[test]
    fn an_option_that_does_not_fit_is_named() {
        let check = |line: &str, selects: bool, trace: bool, profile: bool| {
            let argv: Vec<_> = ["import", "x"].into_iter().chain(line.split(' ')).collect();
            let Ok(Command::Import(args)) = command(&argv) else { panic!("{line}") };
            let (args, name) = (args.recording, line.split(' ').next());
            let named = [args.selecting(), args.not_for_traces(), args.not_for_profiles(false)];
            let requested = [selects, !trace, !profile].map(|is_named| name.filter(|_| is_named));
            assert_eq!(named, requested, "{line}");
        };
        check("--pid 1", true, true, false);
        check("--label k", true, false, true);
        check("--event x", false, false, false);
        check("--cswitch-markers", false, true, false);
        check("--jit-markers", false, false, false);
        let events = RecordingArgs { event: vec!["x".to_owned()], ..RecordingArgs::default() };
        assert_eq!(events.not_for_profiles(true), None);
    }

    #[test]
    fn architectures_have_several_names() {
        for (name, expected) in
            [("arm64", Architecture::Aarch64), ("AMD64", Architecture::X86_64), ("i686", Architecture::X86)]
        {
            assert_eq!(architecture(name), Ok(expected), "{name}");
        }
        assert!(architecture("mips").is_err());
    }
}
