//! The threads that a recording has on machines with many CPUs, here on as many as there are.

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_measured, need_root};
use super::harness::Test;
use super::losses::in_all;
use super::perf_data::expect_kept;
use super::profile::Thread;
use super::recorded::Recording;

pub(super) const TESTS: &[Test] = &[
    Test::new("many_threads_of_the_recorder_come_to_the_same", of_many_threads),
    Test::new("deep_stacks_of_many_walkers_are_the_same", of_deep_stacks),
];

/// At this rate much is in the rings at each look, and many stacks wait.
const RATE: &str = "10000";

fn for_many_cpus(recording: Recording<'_>) -> Recording<'_> {
    recording.options(&["-v", "-r", RATE, "--threads-for", "128"])
}

/// A recording that is kept is imported in another order and by other threads.
fn of_many_threads(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recorded = expect_kept(test, for_many_cpus(test.record(&["fixed_work-cfi", "1000", "200"])))?;
    let said = &recorded.finished.stderr;
    expect_contains("stderr", said, "and walking stacks by 8 beside one")?;
    let (samples, lost) = (recorded.profile.count(), in_all(&recorded.profile));
    expect(samples > 10_000.0, format_args!("only {samples} samples"))?;
    expect_measured(lost == 0.0, format_args!("{lost} were lost beside {samples} samples"))
}

/// Stacks that are made whole from the running program's memory, whoever has walked their copies.
fn of_deep_stacks(test: &Context<'_>) -> Verdict {
    const DEPTH: usize = 300;
    let recording = test.record(&["recursion", "1500", &DEPTH.to_string()]);
    let recorded = expect_kept(test, for_many_cpus(recording))?;
    let depths = recorded.profile.threads.iter().flat_map(Thread::stacks).map(|(stack, _)| stack.len());
    let (whole, all) = (depths.filter(|depth| *depth > DEPTH).count(), recorded.profile.count());
    expect_measured(whole as f64 > 0.5 * all, format_args!("{whole} of {all} stacks are whole"))
}
