//! How often ptrace stops threads: within a budget, and so that all threads get their shares.

use super::context::Context;
use super::expect::{Verdict, expect, expect_eq, expect_measured, expect_share, expect_within};
use super::profile::Thread;
use super::ptrace::record;
use super::spare::{watched, with_spare_time};
use super::test::{SHARES, Test};
use crate::holds::Holds;
use crate::sys;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_thread_stopped_otherwise_is_sampled_on", disturbed).quick().in_pairs(SHARES),
    Test::new("threads_that_stop_all_the_time_hide_no_others", stops).in_pairs(SHARES),
    Test::new("one_thread_is_looked_at_within_its_budget", one_thread_within_budget)
        .exclusive("measures how soon a thread stops"),
    Test::new("many_threads_lower_the_rate_and_are_all_seen", many_threads)
        .exclusive("two hundred threads take all CPUs"),
    Test::new("more_threads_than_cpus_have_their_shares", crowds)
        .exclusive("a hundred threads take all CPUs"),
];

/// A stop for a signal or for a new thread also answers a request to stop.
fn disturbed(test: &Context<'_>) -> Verdict {
    for by in ["signals", "births"] {
        let recorded = record(test, &["disturbed", "1000", by]).options(&["-r", "4000"]).run_well()?;
        let found = recorded.profile.total_share(&format!("work_beside_{by}"));
        expect_measured(found > 0.8, format_args!("{found:.3} of the time is in the work beside {by}"))?;
    }
    Ok(())
}

/// Each worker has samples in its work, and none of them stands still.
fn stops(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["stops", "400", "4"]).options(&["-r", "2000"]).run_well()?;
    let profile = &recorded.profile;
    let workers: Vec<&Thread> =
        profile.threads_named("worker").filter(|thread| thread.total() > 0.0).collect();
    expect_eq("workers", workers.len(), 4)?;
    for worker in workers {
        let works = |stack: &[&super::profile::Frame]| {
            stack.iter().any(|frame| frame.function == "work_beside_stops")
        };
        let working: f64 = worker.stacks().filter(|(stack, _)| works(stack)).map(|(_, weight)| weight).sum();
        // If a thread was forgotten, its time is added at its end, but without stacks.
        expect_measured(
            working > 0.7 * worker.total(),
            format_args!("{working} of a worker's {} samples are in its work", worker.total()),
        )?;
    }
    Ok(())
}

fn many_threads(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["many_threads", "2000", "200"]).options(&["-v"]).run_well()?;
    let profile = &recorded.profile;
    expect_within("all weight", profile.total(), recorded.truth()?.cpu * 1000.0, 0.03)?;
    let seen = profile.threads.iter().filter(|thread| thread.process == "many_threads").count();
    expect_measured(seen > 195, format_args!("{seen} of 201 threads were seen"))?;
    expect_lower_rate(Holds::parse(&recorded.finished.stderr)?, 200.0 * 1000.0)?;
    // One thread, too, would be held for longer at that rate than the budget allows.
    let recording = record(test, &["shares", "2000"]).options(&["-v", "-r", "10000"]);
    let watched = watched(|| recording.run_well())?;
    let holds = Holds::parse(&watched.result.finished.stderr)?;
    expect_lower_rate(holds, 10_000.0)?;
    expect_budget(holds, 1.0, watched.stolen)
}

/// At the usual rate, no thread is left out because of the budget, because each hold takes far less than its
/// limit. If a hypervisor holds a CPU meanwhile, some holds take a hundred times as long, and then the budget
/// leaves others out.
fn one_thread_within_budget(test: &Context<'_>) -> Verdict {
    // A thousand holds a second in a twentieth of the time may take 50 µs each. This is three times as much.
    const MAX_STOP_US: f64 = 150.0;
    let recording = record(test, &["shares", "3000"]).options(&["-v"]);
    let watched = with_spare_time(|| recording.run_well())?;
    let holds = Holds::parse(&watched.result.finished.stderr)?;
    expect_budget(holds, 1.0, watched.stolen)?;
    expect_measured(
        holds.median_us < MAX_STOP_US,
        format_args!("a median of {MAX_STOP_US} µs at most: {holds:?}"),
    )?;
    let looks = holds.count / (watched.result.truth()?.cpu * 1000.0);
    let is_used_up = !watched.had_spare_time && holds.used_ms > 0.8 * holds.allowed_ms;
    expect_measured(
        looks > 0.6 || is_used_up,
        format_args!("{looks:.2} looks for each ms of CPU time: {holds:?}"),
    )
}

/// Checks that threads were held less often than requested, and that the output says so if the budget was the
/// reason. If holds are short on a machine, some of the budget is left. Then nothing was cut.
fn expect_lower_rate(holds: Holds, requested: f64) -> Verdict {
    expect_measured(
        holds.a_second < requested,
        format_args!("{requested} looks a second were requested: {holds:?}"),
    )?;
    let is_used_up = holds.used_ms > 0.9 * holds.allowed_ms;
    expect(
        holds.cut_rounds > 0.0 || !is_used_up,
        format_args!("no round of looks is said to be cut short: {holds:?}"),
    )
}

/// Checks that threads were held for at most a twentieth of each CPU's time, and at most a quarter of the
/// time in total. If there are not more running threads than CPUs, threads that wait for their turn count as
/// held. `stolen` is the time in seconds for which the hypervisor held CPUs, perhaps one with a held thread.
fn expect_budget(holds: Holds, threads: f64, stolen: f64) -> Verdict {
    // The largest budget that can be saved, and the time by which the last hold may exceed it.
    const SLACK_MS: f64 = 4.0;
    let share = (0.05 * threads.min(sys::cpu_count() as f64)).min(0.25);
    let budget_ms = share * holds.seconds() * 1000.0 + SLACK_MS;
    expect_measured(
        holds.total_ms < budget_ms + 1000.0 * stolen,
        format_args!("not within {budget_ms:.1} ms, with {stolen:.3} s stolen: {holds:?}"),
    )?;
    let is_right = (0.8 * budget_ms - SLACK_MS..=budget_ms).contains(&holds.allowed_ms)
        && holds.used_ms <= holds.allowed_ms + SLACK_MS;
    expect(is_right, format_args!("the reported budget is not {budget_ms:.1} ms: {holds:?}"))
}

/// The threads wait for a CPU most of the time. Most of their CPU time must have stacks, and each function
/// must have its share. If the tracer also waits for a CPU, more CPU time passes between two samples of a
/// thread.
fn crowds(test: &Context<'_>) -> Verdict {
    for (args, least) in
        [(["crowd", "300", "8"], 0.9), (["crowd", "80", "50"], 0.6), (["crowd", "80", "100"], 0.6)]
    {
        let recorded = record(test, &args).run_well()?;
        let (profile, cpu) = (&recorded.profile, recorded.truth()?.cpu);
        expect_within(&format!("weight of {args:?}"), profile.total(), cpu * 1000.0, 0.05)?;
        let sampled = 1.0 - profile.total_share("[not sampled]");
        expect_measured(sampled > least, format_args!("{args:?}: {sampled:.3} of the time has stacks"))?;
        for (function, expected) in [("heavy", 0.7), ("light", 0.3)] {
            let found = profile.total_share(function) / sampled;
            expect_share(&format!("{function} of {args:?}"), found, expected, profile.equal_count())?;
        }
    }
    Ok(())
}
