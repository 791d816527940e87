//! What the options of the command line mean for a recording by suspending threads.

use crate::args::{Backend, CallGraph, RecordArgs};
use crate::failure::Failure;
use crate::system::recorder::Options;
use std::time::Duration;

/// Refuses the options that need the kernel of Linux.
pub(super) fn check(args: &RecordArgs) -> Result<(), Failure> {
    let rows = args.shape.rows;
    let asked = [
        (args.backend != Backend::Auto, "--backend"),
        (!matches!(args.stacks.call_graph, CallGraph::Auto | CallGraph::Dwarf), "--call-graph"),
        (args.target.all_cpus, "-a"),
        (args.target.cgroup.is_some(), "--cgroup"),
        (args.cpu.is_some(), "--cpu"),
        (args.perf_data.is_some(), "--perf-data"),
        (args.off_cpu, "--off-cpu"),
        (!args.events.asked.is_empty(), "-e"),
        (rows.per_cpu_threads, "--per-cpu-threads"),
        (rows.cswitch_markers, "--cswitch-markers"),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, option)) => {
            Err(Failure::new(format!("{option} is for Linux: here, threads are sampled by suspending them"))
                .hint(format!("leave out {option}")))
        }
        None => Ok(()),
    }
}

/// The options of a recording.
pub(super) fn of(args: &RecordArgs, duration: Option<Duration>) -> Options {
    Options { rate_hz: args.rate, duration, stack_bytes: args.stacks.stack_size }
}
