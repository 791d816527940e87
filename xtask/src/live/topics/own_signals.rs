//! A program receives the signals that it sends to itself and its children as it does without a recorder.

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::ptrace::by_both;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("traps_reach_the_program_once", traps),
    Test::new("an_unhandled_trap_ends_the_program", unhandled_traps),
    Test::new("queued_signals_come_in_order_and_whole", queued),
    Test::new("a_parent_hears_of_each_stop_of_its_child", child_states),
];

/// Checks that a recorded program has the same output as without a recorder, however often it is stopped.
/// Returns the output.
fn expect_alike(test: &Context<'_>, args: &[&str]) -> Result<String, Stop> {
    let alone = test.program(test.workload(args[0])).args(&args[1..]).run()?.succeeded()?.stdout_text();
    for (how, recording) in by_both(test, || test.record(args).options(&["-r", "10000"])) {
        let recorded = recording.run_well()?;
        expect_eq(how, recorded.finished.stdout_text(), alone.clone())?;
        expect(recorded.profile.total() > 0.0, format_args!("{how}: the profile has no samples"))?;
        let is_by_ptrace = recorded.finished.stderr.contains("by ptrace");
        expect_eq("whether it was recorded by ptrace", is_by_ptrace, how == "by ptrace")?;
    }
    Ok(alone)
}

fn traps(test: &Context<'_>) -> Verdict {
    let output = expect_alike(test, &["traps"])?;
    let expected = "raise: 300 handled of 300, si_code -6\nint3: 300 handled of 300, si_code 128\n";
    expect_eq("what the program says alone", output.as_str(), expected)
}

fn unhandled_traps(test: &Context<'_>) -> Verdict {
    for by in ["raise", "int3"] {
        for (how, recording) in by_both(test, || test.record(&["traps", by])) {
            let finished = recording.run()?.finished;
            expect_eq(&format!("{by}, {how}: the status"), finished.code(), 128 + libc::SIGTRAP)?;
            expect_contains("stderr", &finished.stderr, "`traps` was ended by signal 5 (SIGTRAP")?;
        }
    }
    Ok(())
}

fn queued(test: &Context<'_>) -> Verdict {
    let output = expect_alike(test, &["queued"])?;
    for (from, count) in [("to the thread", 1000), ("from a child", 1000), ("by a timer", 300)] {
        let line = format!(
            "{from}: {count} of {count}, 0 out of order, 0 with another code, 0 from another process\n"
        );
        expect_contains("what the program says alone", &output, &line)?;
    }
    Ok(())
}

/// Checks `waitid` and `SIGCHLD`, both for stopping and for continuing.
fn child_states(test: &Context<'_>) -> Verdict {
    let output = expect_alike(test, &["child_states", "20"])?;
    let count = |part: &str| output.lines().filter(|line| line.ends_with(part)).count();
    let by = |signal: i32| count(&format!("SIGCHLD says stopped by {signal}, waitid stopped by {signal}"));
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].map(by);
    expect_eq("stops by each signal", stops, [20; 4])?;
    expect_eq("times it went on", count("SIGCHLD says continued by 18, waitid continued by 18"), 80)?;
    expect_eq("what came besides", output.lines().last(), Some("no more"))
}
