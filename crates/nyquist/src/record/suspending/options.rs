//! What the options of the command line mean for a recording on Windows and macOS.

use super::sampling;
use crate::args::{Backend, CallGraph, RecordArgs};
use crate::failure::Failure;
use crate::system::NAME;
use crate::system::recorder::{Options, RecordingTarget};
use std::time::Duration;

/// Refuses the options that need the kernel of Linux, or another way to sample.
pub(super) fn check(args: &RecordArgs) -> Result<(), Failure> {
    let rows = args.shape.rows;
    let by_events = sampling::is_by_events(args);
    let linux = [
        (matches!(args.backend, Backend::Perf | Backend::Ptrace), "--backend perf or ptrace"),
        (!matches!(args.stacks.call_graph, CallGraph::Auto | CallGraph::Dwarf), "--call-graph"),
        (args.target.cgroup.is_some(), "--cgroup"),
        (args.target.tid.is_some(), "-t"),
        (args.cpu.is_some(), "--cpu"),
        (args.perf_data.is_some(), "--perf-data"),
        (args.flight.last.is_some(), "--last"),
        (args.flight.delay.is_some(), "--delay"),
        (args.flight.start_paused, "--start-paused"),
        (args.flight.ctl, "--ctl"),
        (!args.events.requested.is_empty(), "-e"),
    ];
    let events = [
        (args.target.all_cpus, "-a"),
        (args.off_cpu, "--off-cpu"),
        (rows.per_cpu_threads, "--per-cpu-threads"),
        (rows.cswitch_markers, "--cswitch-markers"),
    ];
    if let Some((_, option)) = linux.into_iter().find(|(is_requested, _)| *is_requested) {
        return Err(
            Failure::new(format!("{option} is not available on {NAME}")).hint(format!("leave out {option}"))
        );
    }
    match events.into_iter().find(|(is_requested, _)| *is_requested && !by_events) {
        Some((_, option)) => Err(sampling::needs_events(option)),
        None => sampling::check(args),
    }
}

/// The target if it is all of the machine.
pub(super) fn whole_machine(args: &RecordArgs) -> Option<RecordingTarget> {
    sampling::whole_machine(args)
}

/// The options of a recording.
pub(super) fn of(args: &RecordArgs, duration: Option<Duration>) -> Options {
    sampling::options(args, duration)
}
