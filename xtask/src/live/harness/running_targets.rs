//! Programs that run before they are recorded: starts them, records them, and reads how much CPU time they
//! have used.

use std::fs;
use std::path::Path;

use super::by::By;
use super::context::Context;
use super::expect::{Stop, Verdict, expect_measured};
use super::invocation::Running;
use super::profile::{Profile, Thread};

/// Whether a process exists and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Starts a workload and waits until it works. The first word is its name.
pub(crate) fn working<'a>(test: &'a Context<'a>, args: &[&str]) -> Result<Running<'a>, anyhow::Error> {
    working_copy(test, &test.workload(args[0]), &args[1..])
}

/// Starts a workload that lies at a path of the test's own, and waits until it works.
pub(crate) fn working_copy<'a>(
    test: &'a Context<'a>,
    program: &Path,
    args: &[&str],
) -> Result<Running<'a>, anyhow::Error> {
    let ready = test.fresh("ready");
    let call = test.program(program).args(args);
    let running = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    running.wait_for_file(&ready)?;
    Ok(running)
}

/// Ends a running program.
pub(crate) fn end(target: Running<'_>) -> Verdict {
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

/// Records a running program.
pub(crate) fn record_running(by: By, test: &Context<'_>, options: &[&str]) -> Result<Profile, anyhow::Error> {
    let output = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options);
    by.adapt(test, call).run()?.succeeded()?;
    Profile::read(&output)
}

/// A recording of processes that ran before it and continue after it.
pub(crate) struct OfRunning {
    pub(crate) profile: Profile,
    /// The maximum CPU time of each process while it was recorded, in milliseconds.
    pub(crate) used: Vec<f64>,
}

/// How much CPU time each process must use while it is recorded, in milliseconds.
pub(crate) const WORK: f64 = 300.0;

/// Records a running program until each of the processes has worked for [`WORK`], however long that takes.
pub(crate) fn record_working(test: &Context<'_>, options: &[&str], pids: &[u32]) -> Result<OfRunning, Stop> {
    record_working_by(By::Best, test, options, pids)
}

/// The same with a given backend.
pub(crate) fn record_working_by(
    by: By,
    test: &Context<'_>,
    options: &[&str],
    pids: &[u32],
) -> Result<OfRunning, Stop> {
    let used = || pids.iter().map(|pid| process_cpu_ms(*pid)).collect::<Result<Vec<f64>, _>>();
    let output = test.fresh("profile.json.gz");
    let before = used()?;
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options);
    let recorder = by.adapt(test, call).start()?;
    recorder.wait_until_recording()?;
    let begun = used()?;
    recorder.wait_until("the processes to work", || {
        let grown = |(now, begun): (&f64, &f64)| now - begun > WORK;
        used().is_ok_and(|now| now.iter().zip(&begun).all(grown))
    })?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    let used = used()?.iter().zip(before).map(|(after, before)| after - before).collect();
    Ok(OfRunning { profile: Profile::read(&output)?, used })
}

/// Checks that a process has the right number of samples for its CPU time, which is at least [`WORK`].
pub(crate) fn expect_due(what: &str, weight: f64, used: f64) -> Verdict {
    let due = WORK * 0.95 - 5.0..used * 1.05 + 5.0;
    expect_measured(due.contains(&weight), format_args!("{what} has {weight} samples, not {due:?}"))
}

/// The CPU time of a living process, from the scheduler's sum.
pub(crate) fn process_cpu_ms(pid: u32) -> Result<f64, anyhow::Error> {
    let mut sum = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // If a thread ends meanwhile, its time is missing.
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next().unwrap_or_default().parse().unwrap_or(0.0);
    }
    Ok(sum / 1e6)
}

/// The weight of the samples of a process.
pub(crate) fn weight_of(profile: &Profile, pid: u32) -> f64 {
    let pid = pid.to_string();
    profile.threads.iter().filter(|thread| thread.pid == pid).map(Thread::total).sum()
}
