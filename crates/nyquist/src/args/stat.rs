//! The arguments of `nyquist stat`.

use crate::args::Verbosity;
use crate::args::quantity::{seconds, whole};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `nyquist stat`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[command(override_usage = "nyquist stat [OPTIONS] [--] [VAR=VALUE...] COMMAND [ARGS...]
       nyquist stat [OPTIONS] [--] COMMAND [ARGS...] --vs OTHER [ARGS...]
       nyquist stat [OPTIONS] (-p PID,... | -t TID | -a) [COMMAND [ARGS...]]")]
#[command(after_help = "Examples:
  nyquist stat ./app                        Time, CPU time, switches, faults and, with a PMU, cycles and more
  nyquist stat -r 10 ./app                  The mean of ten runs, with their standard deviation
  nyquist stat -r 10 ./old --vs ./new       Two commands, in turns: Welch's t interval says what is chance
  nyquist stat --per-thread ./app           Each thread by itself, also those that end before the program does
  nyquist stat -e cs,faults -I 500 ./app    Every half second
  nyquist stat -e sched:sched_switch -a sleep 5    On all CPUs, while a command runs

The table is printed on standard error, so that the command has standard output to itself; -o writes it to a file. \
JSON is printed on standard output behind what the command prints there, or to the file of -o.

The exit status is the command's own, of several runs the last one's.")]
pub(crate) struct StatArgs {
    /// Count these events, as `nyquist list` names them (default: time, faults, switches, and the CPU's cycles,
    /// instructions and branches where it has counters); several are separated by commas
    #[arg(short, long = "event", value_name = "EVENT,...")]
    pub(crate) events: Vec<String>,
    /// Run the command N times, and show the mean and the standard deviation [default: 1; with --vs 5]
    #[arg(short, long, value_name = "N", value_parser = |text: &str| whole::<u32>(text, 1..=100_000))]
    pub(crate) repeat: Option<u32>,
    /// Also print the counts of each interval of MS milliseconds
    #[arg(short = 'I', long, value_name = "MS", value_parser = |text: &str| whole::<u64>(text, 10..=86_400_000))]
    pub(crate) interval: Option<u64>,
    /// Count these running processes, with the children that they start, until they end or a COMMAND does
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', conflicts_with = "repeat")]
    pub(crate) pid: Vec<u32>,
    /// Count this thread of a running process alone, without the threads and processes that it starts
    #[arg(short, long, value_name = "TID", conflicts_with_all = ["pid", "all_cpus", "per_thread", "repeat"])]
    pub(crate) tid: Option<u32>,
    /// Count the whole machine, until Ctrl-C or until a COMMAND ends
    #[arg(short, long, conflicts_with_all = ["pid", "repeat"])]
    pub(crate) all_cpus: bool,
    /// Count each thread of the command and of its children by itself, or each of the running processes
    #[arg(long, conflicts_with_all = ["interval", "repeat", "all_cpus"])]
    pub(crate) per_thread: bool,
    /// End after this many seconds; a launched command then gets SIGTERM
    #[arg(short, long, value_name = "SECONDS", value_parser = |text: &str| seconds(text, 1e-3..=1e9))]
    pub(crate) duration: Option<Duration>,
    /// Go on with the next run where one has failed
    #[arg(short, long)]
    pub(crate) ignore_exit_code: bool,
    /// Write there instead ("-": standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON; with --interval, a line for each interval
    #[arg(long)]
    pub(crate) json: bool,
    /// Under sudo, run the command as root and not as the user who typed it
    #[arg(long)]
    pub(crate) as_root: bool,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
    /// The program to count, with its arguments; NAME=VALUE before it sets its environment. A word `--vs` begins a
    /// second command, which is compared with the first
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present_any = ["pid", "tid", "all_cpus"])]
    pub(crate) command: Vec<OsString>,
}

/// The word between two commands that are compared.
#[allow(dead_code, reason = "for commands that are for Linux")]
const VERSUS: &str = "--vs";

#[allow(dead_code, reason = "for commands that are for Linux")]
impl StatArgs {
    /// The command, and the one that it is compared with, if there is one.
    pub(crate) fn commands(&self) -> (&[OsString], Option<&[OsString]>) {
        match self.command.iter().position(|word| word == VERSUS) {
            Some(at) => (&self.command[..at], Some(&self.command[at + 1..])),
            None => (&self.command, None),
        }
    }

    /// Whether a command is counted.
    pub(crate) fn is_command(&self) -> bool {
        self.pid.is_empty() && self.tid.is_none() && !self.all_cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};

    fn stat(argv: &[&str]) -> Result<StatArgs, clap::Error> {
        command(&[&["stat"], argv].concat()).map(|command| match command {
            Command::Stat(args) => *args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn two_commands_are_distinguished() {
        let args = stat(&["-r", "3", "./a", "-x", "--vs", "./b", "--vs"]).unwrap();
        let (first, second) = args.commands();
        assert_eq!(first, ["./a", "-x"]);
        assert_eq!(second.unwrap(), ["./b", "--vs"]);
        assert!(stat(&["./a", "-r", "3"]).unwrap().commands().1.is_none());
        assert_eq!(stat(&["-r", "2", "-I", "100", "ls"]).unwrap().interval, Some(100));
        assert_eq!(stat(&["-e", "cs,faults", "-e", "cycles", "ls"]).unwrap().events, ["cs,faults", "cycles"]);
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        for argv in [
            &[][..],
            &["-r", "2", "-p", "1"],
            &["-a", "-p", "1"],
            &["-t", "1", "-p", "1"],
            &["-t", "1", "-a"],
            &["-t", "1", "--per-thread"],
            &["-t", "1,2"],
            &["--per-thread", "-a"],
            &["--per-thread", "-r", "2", "ls"],
            &["-I", "1", "ls"],
            &["-r", "0", "ls"],
        ] {
            assert!(stat(argv).is_err(), "{argv:?}");
        }
    }
}
