//! The arguments of `nyquist record`.

use crate::args::flight::FlightArgs;
use crate::args::quantity::{rate, seconds, whole};
use crate::args::{EventArgs, PresentationArgs, SpoolArgs, StackArgs};
use clap::{Args, ValueEnum};
use nyquist_convert::Shape;
use nyquist_profile::firefox::FormatVersion;
use nyquist_record::parse_cpu_list;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// How many seconds a recording can be given.
const SECONDS: RangeInclusive<f64> = 1e-3..=1e9;

/// The example of the whole machine, as this system records it.
#[cfg(target_os = "linux")]
macro_rules! whole_machine {
    () => {
        "  sudo nyquist record -a -d 10              The whole machine\n"
    };
}
#[cfg(windows)]
macro_rules! whole_machine {
    () => {
        "  nyquist record -a -d 10                   The whole machine, in a terminal of an administrator\n"
    };
}
#[cfg(not(any(target_os = "linux", windows)))]
macro_rules! whole_machine {
    () => {
        ""
    };
}

/// `nyquist record`
#[derive(Debug, Args)]
#[command(override_usage = "nyquist record [OPTIONS] [--] [VAR=VALUE...] COMMAND [ARGS...]
       nyquist record [OPTIONS] -p PID,...|--name NAME,... [COMMAND [ARGS...]]
       nyquist record [OPTIONS] -a|--cgroup PATH [COMMAND [ARGS...]]")]
#[command(after_help = concat!("Examples:
  nyquist record ./app --its-own options    Record, save and open the profile
  nyquist record -s -o app.svg ./app        Save only, as a flame graph
  nyquist record -p 4711 -d 10              Ten seconds of a running process
  nyquist record --off-cpu ./server         Also where threads wait
  nyquist record -e page-faults ./app       Also page faults, each with its stack
", whole_machine!(), "
The exit status is the command's own: its code, or 128 + the signal that ended it; 127 where it \
was not found and 126 where it could not be run. Of processes that ran before it is 0.

A command beside -p, --name, -a or --cgroup says how long to record, as in `nyquist record -a sleep 10`; it is \
recorded only if it is among what they name.

The first Ctrl-C goes to the command (it ends an attached recording) and the profile is saved; the second kills \
the command. SIGTERM is passed on to the command and the profile is saved."))]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct RecordArgs {
    /// Samples a second, of each running thread
    #[arg(short, long, visible_short_alias = 'F', value_name = "HZ", default_value_t = 1000, value_parser = rate)]
    pub(crate) rate: u32,
    /// How to sample: on Linux by perf_event_open, or by ptrace where that is refused; on Windows by suspending
    /// threads, or by the kernel's events, which -a needs; or by what works best
    #[arg(long, value_name = "BACKEND", value_enum, default_value_t)]
    pub(crate) backend: Backend,
    #[command(flatten)]
    pub(crate) stacks: StackArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Sample on these CPUs only, as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpu: Option<CpuList>,
    /// End the recording after this many seconds; a launched command then gets SIGTERM; if it ends earlier,
    /// processes that it left running are recorded until then
    #[arg(short, long, value_name = "SECONDS", value_parser = |text: &str| seconds(text, SECONDS))]
    pub(crate) duration: Option<Duration>,
    /// Save the profile there, in the format that the name ends in ("-": standard output)
    #[arg(short, long, value_name = "FILE", default_value = "profile.json.gz")]
    pub(crate) output: PathBuf,
    /// Also draw a flame graph there, as an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,
    /// Also save the kernel's records, with registers and stacks, as a perf.data file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["iteration_count", "events"])]
    pub(crate) perf_data: Option<PathBuf>,
    /// Do not count what the processes use: CPU, memory, page faults, bytes read and written, threads, open files
    #[arg(long)]
    pub(crate) no_counters: bool,
    /// Save the profile and end, without serving it
    #[arg(short, long, conflicts_with = "serve")]
    pub(crate) save_only: bool,
    /// Serve the profile even when there is no terminal to end it from
    #[arg(long)]
    pub(crate) serve: bool,
    /// Serve the built-in viewer from the start on, and show there what was recorded so far, each second
    #[arg(long, conflicts_with = "save_only")]
    pub(crate) live: bool,
    /// The profile's name (default: the command's)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile_name: Option<String>,
    /// The version of the Firefox Profiler's format to write: 66, or 49 for readers of per-thread tables
    #[arg(long, value_name = "VERSION", env = "NYQUIST_PROFILE_VERSION", default_value_t)]
    pub(crate) profile_version: FormatVersion,
    /// Also record where threads wait, for how long, and what for
    #[arg(long, conflicts_with = "perf_data")]
    pub(crate) off_cpu: bool,
    /// Also record where the command and its children allocate memory, and what they free: `report --event live`,
    /// `peak`, `total`, `temporary` (Linux)
    #[arg(long, conflicts_with = "perf_data")]
    pub(crate) alloc: bool,
    /// Take one sample per BYTES that are allocated, on average (1: record each allocation)
    #[arg(long, value_name = "BYTES", requires = "alloc", default_value_t = 512 << 10, value_parser = |text: &str| whole::<u64>(text, 1..=1 << 40))]
    pub(crate) alloc_rate: u64,
    #[command(flatten)]
    pub(crate) events: EventArgs,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    /// Under sudo, run the command as root and not as the user who typed it
    #[arg(long)]
    pub(crate) as_root: bool,
    // Its heading is that of the options behind it, too, up to the next heading.
    #[command(flatten)]
    pub(crate) flight: FlightArgs,
    #[command(flatten)]
    pub(crate) presentation: PresentationArgs,
    /// The program to record, with its arguments; NAME=VALUE before it sets its environment
    #[arg(
        trailing_var_arg = true,
        value_name = "COMMAND",
        required_unless_present_any = ["pid", "tid", "name", "all_cpus", "cgroup"]
    )]
    pub(crate) command: Vec<OsString>,
}

impl TargetArgs {
    /// Whether a command is recorded.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn is_command(&self) -> bool {
        let has_process = !self.pid.is_empty() || self.tid.is_some() || !self.name.is_empty();
        !has_process && !self.all_cpus && self.cgroup.is_none()
    }

    /// The numbers of the processes, or of the thread, that the user named.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.pid.iter().copied().chain(self.tid).collect()
    }
}

/// The processes to record instead of a command, until they or a command end.
#[derive(Debug, Default, Args)]
pub(crate) struct TargetArgs {
    /// Record these running processes, with all their threads and children
    #[arg(
        short,
        long,
        value_name = "PID,...",
        value_delimiter = ',',
        value_parser = pid,
        conflicts_with = "iteration_count"
    )]
    pub(crate) pid: Vec<u32>,
    /// Record this thread of a running process alone, without the threads and processes that it starts
    #[arg(short, long, conflicts_with_all = ["pid", "name", "all_cpus", "cgroup", "iteration_count"])]
    pub(crate) tid: Option<u32>,
    /// Record the running processes of these names ("*" and "?" as in a shell), with all their threads and children;
    /// with -a: only processes of these names, as they come and go
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "iteration_count")]
    pub(crate) name: Vec<String>,
    /// Record every process of the machine
    #[arg(short, long, conflicts_with_all = ["pid", "iteration_count"])]
    pub(crate) all_cpus: bool,
    /// Record the processes of this control group: its path, as /proc/PID/cgroup shows it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "name", "all_cpus", "iteration_count"])]
    pub(crate) cgroup: Option<PathBuf>,
}

fn pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| match several(text) {
        Some(pids) => format!("several are separated by commas, as {pids}"),
        None => "not the number of a process (--name takes names)".to_owned(),
    })
}

/// Numbers with spaces between them, in the form in which they have to be typed.
fn several(text: &str) -> Option<String> {
    let numbers: Vec<&str> = text.split_whitespace().collect();
    let are_numbers = numbers.len() > 1 && numbers.iter().all(|number| number.parse::<u32>().is_ok());
    are_numbers.then(|| numbers.join(","))
}

impl RecordArgs {
    /// The processes that were meant if the numbers are separate words. The words behind the first would be
    /// read as a command.
    pub(crate) fn pids_in_words(&self) -> Option<String> {
        let argv: Option<Vec<u32>> = self.command.iter().map(|word| word.to_str()?.parse().ok()).collect();
        let argv = argv.filter(|argv| !argv.is_empty() && !self.target.pid.is_empty())?;
        let pids: Vec<_> = self.target.pid.iter().chain(&argv).map(u32::to_string).collect();
        Some(pids.join(","))
    }
}

/// CPUs, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuList(
    #[allow(dead_code, reason = "for commands that are for Linux")] pub(crate) Vec<u32>,
);

fn cpu_list(text: &str) -> Result<CpuList, String> {
    parse_cpu_list(text).map(CpuList).ok_or_else(|| "not a list of CPUs, as 0-3,8".to_owned())
}

/// How often the command runs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RunsArgs {
    /// Run the command N times, one run after another, into one profile
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = |text: &str| whole::<u32>(text, 1..=u32::MAX))]
    pub(crate) iteration_count: u32,
    /// Go on with the next run where one has failed
    #[arg(short, long)]
    pub(crate) ignore_exit_code: bool,
}

/// The arguments in names of processes, and the handling of files of just-in-time compilers.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ShapeArgs {
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    /// Add up to N of a program's arguments to its process's name (all without N, but at most 8 KiB)
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = 0,
        default_missing_value = "1000000",
        hide_default_value = true
    )]
    pub(crate) include_args: usize,
    /// Remove the files that just-in-time compilers write for profilers (jit-PID.dump) as soon as they are opened; the
    /// code in them is then shown without source and instructions
    #[arg(long)]
    pub(crate) unlink_aux_files: bool,
}

/// Which threads a profile has, and which markers are made for them.
#[derive(Clone, Copy, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct RowArgs {
    /// Merge threads of the same name, and processes of the same name, that do not overlap in time
    #[arg(long)]
    pub(crate) reuse_threads: bool,
    /// Fold repeated frames at the base of a stack into one
    #[arg(long)]
    pub(crate) fold_recursive_prefix: bool,
    /// Add a thread for each CPU, with all that ran on it
    #[arg(long)]
    pub(crate) per_cpu_threads: bool,
    /// Keep only the main thread of each process
    #[arg(long)]
    pub(crate) main_thread_only: bool,
    /// Add a marker for each time that a thread was on a CPU: which CPU, and why it left
    #[arg(long)]
    pub(crate) cswitch_markers: bool,
    /// Add a marker for each function that a just-in-time compiler notes in a jitdump
    #[arg(long)]
    pub(crate) jit_markers: bool,
}

impl From<RowArgs> for Shape {
    fn from(args: RowArgs) -> Self {
        Self {
            reuse_threads: args.reuse_threads,
            fold_recursive_prefix: args.fold_recursive_prefix,
            cpu_threads: args.per_cpu_threads,
            main_threads_only: args.main_thread_only,
            program_arguments: 0,
            switch_markers: args.cswitch_markers,
            waits: false,
            jit_markers: args.jit_markers,
        }
    }
}

impl From<ShapeArgs> for Shape {
    fn from(args: ShapeArgs) -> Self {
        Self { program_arguments: args.include_args, ..args.rows.into() }
    }
}

/// The ways to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// The best that the machine allows
    #[default]
    Auto,
    /// `perf_event_open`: kernel code too, where that is permitted
    Perf,
    /// ptrace: user code, and where threads wait; where `perf_event_open` is refused
    Ptrace,
    /// Suspending threads: user code, on Windows and macOS
    Suspend,
    /// The kernel's events (ETW) on Windows: kernel code too, as an administrator
    Etw,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};

    fn record(argv: &[&str]) -> Result<RecordArgs, clap::Error> {
        command(&[&["record"], argv].concat()).map(|command| match command {
            Command::Record(args) => args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn everything_after_the_command_belongs_to_it() {
        let args = record(&["-F", "500", "./app", "-o", "x", "--rate", "3"]).unwrap();
        assert_eq!(args.command, ["./app", "-o", "x", "--rate", "3"]);
        assert_eq!(args.rate, 500);
        assert_eq!(record(&["--", "-odd", "--"]).unwrap().command, ["-odd", "--"]);
    }

    #[test]
    fn a_command_or_a_pid_is_needed() {
        let nothing = record(&[]).unwrap_err().to_string();
        assert!(nothing.contains("COMMAND") && !nothing.contains("--pid <PID>"), "{nothing}");
        assert_eq!(record(&["-p", "17"]).unwrap().target.pid, [17]);
    }

    #[test]
    fn several_processes_fit_in_one_word_or_in_many() {
        assert_eq!(record(&["-p", "1,2", "-p", "3"]).unwrap().target.pid, [1, 2, 3]);
        for wrong in ["x", "1,x", "1.5", "99999999999"] {
            let message = record(&["-p", wrong]).unwrap_err().to_string();
            assert!(message.contains("not the number of a process"), "{message}");
        }
        assert_eq!(record(&["--name", "cc1*,ld"]).unwrap().target.name, ["cc1*", "ld"]);
    }

    #[test]
    fn numbers_of_processes_with_spaces_get_commas() {
        let message = record(&["-p", "12 34"]).unwrap_err().to_string();
        assert!(message.contains("several are separated by commas, as 12,34"), "{message}");
        let meant = |argv: &[&str]| record(argv).unwrap().pids_in_words();
        assert_eq!(meant(&["-p", "12", "34", "56"]).as_deref(), Some("12,34,56"));
        for argv in [&["-p", "12"][..], &["-p", "12", "sleep", "3"], &["34"]] {
            assert_eq!(meant(argv), None, "{argv:?}");
        }
    }

    #[test]
    fn one_thing_is_recorded_at_a_time() {
        for argv in [&["-a", "-p", "1"][..], &["--cgroup", "/x", "-a"], &["--cgroup", "/x", "--name", "x"]] {
            assert!(record(argv).is_err(), "{argv:?}");
        }
        assert!(record(&["-a", "--name", "x"]).unwrap().target.all_cpus);
    }

    #[test]
    fn a_command_may_stand_beside_what_is_recorded() {
        for argv in
            [&["-a", "sleep", "3"][..], &["-p", "1", "--", "sleep", "3"], &["--cgroup", "/x", "sleep", "3"]]
        {
            assert_eq!(record(argv).unwrap().command, ["sleep", "3"], "{argv:?}");
        }
        assert!(record(&["-a", "--iteration-count", "2", "ls"]).is_err());
    }

    #[test]
    fn cpus_are_a_list() {
        assert_eq!(record(&["--cpu", "0-2,5", "ls"]).unwrap().cpu.unwrap().0, [0, 1, 2, 5]);
        assert!(record(&["--cpu", "2-1", "ls"]).is_err());
    }

    #[test]
    fn as_many_arguments_as_requested_are_included() {
        let check = |argv: &[&str], expected| assert_eq!(record(argv).unwrap().shape.include_args, expected);
        check(&["ls", "--include-args"], 0);
        check(&["--include-args=2", "ls"], 2);
        check(&["--include-args", "ls"], 1_000_000);
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for argv in [
            ["-r", "0"],
            ["-r", "x"],
            ["-r", "nan"],
            ["-d", "0"],
            ["-d", "-1"],
            ["-d", "inf"],
            ["-P", "70000"],
            ["--backend", "dtrace"],
            ["--call-graph", "lbr"],
            ["--stack-size", "0"],
            ["--stack-size", "65529"],
            ["--stack-size", "32k"],
        ] {
            assert!(record(&[argv[0], argv[1], "ls"]).is_err(), "{argv:?}");
        }
    }
}
