//! The result of a run, and the runs of a command one after the other.

use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::number::counted;
use crate::printer::Printer;
use crate::record::summary::RunReport;
use crate::system::launch::EndReason;
use std::time::{Duration, Instant};

/// The result of a run, or of several runs.
pub(crate) struct Run {
    /// How it went.
    pub(crate) report: RunReport,
    /// Why the last run ended.
    pub(crate) reason: EndReason,
    /// The exit status of this program, if nothing fails from now on.
    pub(crate) status: u32,
    /// The CPU time of the command by the system's accounting, if it has ended.
    pub(crate) used: Option<Duration>,
    /// The descendants of the recorded processes that still run.
    pub(crate) live: Vec<u32>,
    /// The reason why the kernel's records could not be kept, if they were to be.
    pub(crate) not_kept: Option<Failure>,
}

impl Run {
    /// Leaves out the sums of the system that have more than was requested: they are of all threads and all of the
    /// time, and the command's also of all CPUs.
    pub(super) fn with_requested_sums(mut self, args: &RecordArgs) -> Self {
        let has_all = !args.shape.rows.main_thread_only && args.flight.last.is_none();
        self.used = self.used.filter(|_| has_all && args.cpu.is_none() && !args.flight.is_controlled());
        self.report.total_cpu_time_ns = self.report.total_cpu_time_ns.filter(|_| has_all);
        self
    }

    /// This run with the sums and warnings of those before it.
    fn after(mut self, former: Self) -> Self {
        self.report = self.report.after(former.report);
        self.used = self.used.zip(former.used).map(|(used, before)| used + before);
        self
    }
}

/// Records the requested number of runs of the command. `record` records one, for at most the given time.
pub(crate) fn record_runs(
    args: &RecordArgs,
    printer: Printer,
    mut record: impl FnMut(Option<Duration>) -> Result<Run, Failure>,
) -> Result<Run, Failure> {
    let count = args.runs.iteration_count;
    let began = Instant::now();
    let mut runs = record(args.duration)?;
    for number in 2..=count {
        let left = args.duration.map(|duration| duration.saturating_sub(began.elapsed()));
        if runs.reason != EndReason::Exited || left == Some(Duration::ZERO) {
            break;
        }
        if runs.status != 0 && !args.runs.ignore_exit_code {
            let (status, left_out) = (runs.status, counted(u64::from(count - number + 1), "run"));
            printer.warn(format_args!(
                "the command failed with {status}: {left_out} left out (-i continues in spite of a failure)"
            ));
            break;
        }
        printer.detail(format_args!("Run {number} of {count}"));
        runs = record(left)?.after(runs);
    }
    Ok(runs)
}
