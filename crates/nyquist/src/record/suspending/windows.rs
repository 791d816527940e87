//! How threads are sampled: by suspending them, or by the kernel's events (ETW).

use crate::args::{Backend, RecordArgs};
use crate::failure::Failure;
use crate::system::elevation::powershell_line;
use crate::system::recorder::backend::OpenError;
use nyquist_record::windows::{Options, RecordingTarget, SamplingMethod};
use std::time::Duration;

/// Whether the kernel's events are recorded: they are requested, or only they show what is requested.
pub(crate) fn is_by_events(args: &RecordArgs) -> bool {
    match args.backend {
        Backend::Etw => true,
        Backend::Auto => args.target.all_cpus,
        Backend::Suspend | Backend::Perf | Backend::Ptrace => false,
    }
}

/// The failure of an option that needs the kernel's events.
pub(crate) fn needs_events(option: &str) -> Failure {
    Failure::new(format!("{option} needs the kernel's events: threads that are suspended do not show it"))
        .hint("`--backend etw` records them, as an administrator")
}

/// Refuses options that go with other ways to sample.
pub(crate) fn check(args: &RecordArgs) -> Result<(), Failure> {
    if is_by_events(args) && args.stacks.stack_size.is_some() {
        return Err(Failure::new(
            "--stack-size needs copies of stacks, and the kernel walks them itself (ETW)",
        )
        .hint("leave out --stack-size"));
    }
    Ok(())
}

/// The hint with the line that runs this command as an administrator, if it works then.
pub(crate) fn as_administrator(error: &OpenError) -> Option<String> {
    if !error.needs_administrator() {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let folder = std::env::current_dir().ok()?;
    let line = powershell_line(&program, &arguments, &folder)?;
    Some(format!("or paste this into PowerShell, which asks for the rights: {line}"))
}

/// The target if it is all of the machine.
pub(crate) fn whole_machine(args: &RecordArgs) -> Option<RecordingTarget> {
    args.target.all_cpus.then_some(RecordingTarget::Machine)
}

/// The options of a recording.
pub(crate) fn options(args: &RecordArgs, duration: Option<Duration>) -> Options {
    let waits = args.off_cpu || args.shape.rows.cswitch_markers;
    let method = if is_by_events(args) { SamplingMethod::Etw { waits } } else { SamplingMethod::Suspend };
    Options { rate_hz: args.rate, duration, stack_bytes: args.stacks.stack_size, method }
}
