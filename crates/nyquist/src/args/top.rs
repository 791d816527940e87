//! The arguments of `nyquist top`.

use crate::args::quantity::{rate, seconds, whole};
use crate::args::{ServerArgs, SortBy, StackArgs, SymbolArgs, Ui, Verbosity};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// What of allocations `nyquist top` shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopEvent {
    /// Bytes that were allocated
    #[default]
    Total,
    /// Bytes that were allocated and not freed so far
    Live,
}

/// `nyquist top`
#[derive(Debug, Args)]
#[command(override_usage = "nyquist top [OPTIONS] [--] [VAR=VALUE...] COMMAND [ARGS...]
       nyquist top [OPTIONS] -p PID,...|-t TID")]
#[command(after_help = "Examples:
  nyquist top ./app                    Watch a program
  nyquist top -p 4711                  Watch a running process
  nyquist top --off-cpu ./server       Also where its threads wait
  nyquist top --alloc ./server         Also where they allocate memory
  nyquist top --web ./app              Watch it in the browser

What a launched command prints does not disturb the screen: its last lines are view 4, and where it \
fails they are repeated in the end. It has nothing to read. It gets SIGTERM when top is quit; attached processes \
are left alone. Press ? for the keys.

The exit status is 0 after q, 128 + the signal after a signal, and the command's own where it has ended by itself.")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct TopArgs {
    /// Watch these running processes, with all of their threads and children
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', conflicts_with = "command")]
    pub(crate) pid: Vec<u32>,
    /// Watch this thread of a running process alone, without the threads and processes that it starts
    #[arg(short, long, value_name = "TID", conflicts_with_all = ["pid", "command"])]
    pub(crate) tid: Option<u32>,
    /// Samples a second, of each running thread
    #[arg(short, long, visible_short_alias = 'F', value_name = "HZ", default_value_t = 1000, value_parser = rate)]
    pub(crate) rate: u32,
    #[command(flatten)]
    pub(crate) stacks: StackArgs,
    /// Also watch where threads wait, for how long, and what for (key w: CPU time, waiting, or both)
    #[arg(long)]
    pub(crate) off_cpu: bool,
    /// Also watch where the command and its children allocate memory (key m: allocated bytes, live bytes, or time)
    #[arg(long)]
    pub(crate) alloc: bool,
    /// Take one sample per BYTES that are allocated, on average (1: record each allocation)
    #[arg(long, value_name = "BYTES", requires = "alloc", default_value_t = 512 << 10, value_parser = |text: &str| whole::<u64>(text, 1..=1 << 40))]
    pub(crate) alloc_rate: u64,
    /// What of the allocations is shown first
    #[arg(long, value_enum, default_value_t, value_name = "EVENT", requires = "alloc")]
    pub(crate) event: TopEvent,
    /// How many of the last seconds are shown beside the whole (keys + and -)
    #[arg(short, long, value_name = "SECONDS", default_value_t = 5, value_parser = |text: &str| whole::<u64>(text, 1..=3600))]
    pub(crate) window: u64,
    /// Time between two updates of the display
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = |text: &str| seconds(text, 0.1..=3600.0))]
    pub(crate) interval: Duration,
    /// What functions are ordered by (key s)
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    pub(crate) sort: SortBy,
    /// Show names with their generic arguments and parameters
    #[arg(long)]
    pub(crate) full_names: bool,
    /// Print a table every interval, as is done if the standard output is not a terminal
    #[arg(short, long)]
    pub(crate) batch: bool,
    /// End after N tables
    #[arg(short = 'n', long, value_name = "N", requires = "batch", value_parser = |text: &str| whole::<u64>(text, 1..=1_000_000_000))]
    pub(crate) iterations: Option<u64>,
    /// Print at most N functions a table (0: all)
    #[arg(long, value_name = "N", default_value_t = 20, requires = "batch")]
    pub(crate) limit: usize,
    /// Show it in the built-in viewer, in a browser, and print nothing but its link; the last minute is in detail there
    #[arg(long, conflicts_with_all = ["batch", "sort", "full_names"])]
    pub(crate) web: bool,
    /// With --web: print the link and do not open a browser
    #[arg(long, requires = "web")]
    pub(crate) no_open: bool,
    /// With --web: serve on this port (default: the first free one from 3000 on)
    #[arg(short = 'P', long, value_name = "PORT", requires = "web", value_parser = |text: &str| whole::<u16>(text, 0..=u16::MAX))]
    pub(crate) port: Option<u16>,
    /// The front end that shows profiles
    #[arg(long, hide = true, env = "PROFILER_URL", default_value = "https://profiler.firefox.com")]
    pub(crate) profiler_url: String,
    /// Under sudo, run the command as root and not as the user who typed it
    #[arg(long)]
    pub(crate) as_root: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
    /// The command, its environment before it and its arguments behind it
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present_any = ["pid", "tid"])]
    pub(crate) command: Vec<OsString>,
}

impl TopArgs {
    /// The numbers of the processes, or of the thread, that the user named, each once.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let numbers: BTreeSet<_> = self.pid.iter().copied().chain(self.tid).collect();
        numbers.into_iter().collect()
    }

    /// How the page is served.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn server(&self) -> ServerArgs {
        ServerArgs {
            no_open: self.no_open,
            port: self.port,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ui: Ui::Builtin,
            profiler_url: self.profiler_url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};

    fn top(argv: &[&str]) -> Result<TopArgs, clap::Error> {
        command(&[&["top"], argv].concat()).map(|command| match command {
            Command::Top(args) => args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn everything_after_the_command_belongs_to_it() {
        let args = top(&["-w", "10", "A=1", "./app", "-p", "3", "--batch"]).unwrap();
        assert_eq!(args.command, ["A=1", "./app", "-p", "3", "--batch"]);
        assert_eq!((args.window, &*args.pid, args.batch), (10, &[][..], false));
    }

    #[test]
    fn a_command_or_a_pid_is_needed_and_not_both() {
        assert!(top(&[]).is_err() && top(&["-p", "1", "ls"]).is_err());
        assert!(top(&["-t", "1", "ls"]).is_err() && top(&["-t", "1", "-p", "1"]).is_err());
        assert_eq!(top(&["-t", "17"]).unwrap().numbers(), [17]);
        assert_eq!(top(&["-p", "17"]).unwrap().pid, [17]);
        assert_eq!(top(&["-p", "2,1", "-p", "3,1"]).unwrap().numbers(), [1, 2, 3]);
    }

    #[test]
    fn the_page_is_served_only_if_requested() {
        assert_eq!(top(&["--web", "-P", "0", "ls"]).unwrap().server().port, Some(0));
        assert!(top(&["-P", "0", "ls"]).is_err() && top(&["--web", "-b", "ls"]).is_err());
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for argv in [["-w", "0"], ["--interval", "0"], ["--interval", "nan"], ["-n", "3"], ["-r", "0"]] {
            assert!(top(&[argv[0], argv[1], "ls"]).is_err(), "{argv:?}");
        }
        assert!(top(&["-b", "-n", "0", "ls"]).is_err());
        assert!(top(&["--event", "live", "ls"]).is_err() && top(&["--alloc-rate", "1", "ls"]).is_err());
        assert!(top(&["--alloc", "--event", "peak", "ls"]).is_err());
    }
}
