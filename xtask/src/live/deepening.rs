//! The moment at which larger parts of each stack are copied: switching the events loses no sample and
//! doubles none.

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip};
use super::losses::in_all;
use super::markers::markers;
use super::profile::{Profile, Thread};
use super::running_targets::end;
use super::test::Test;

/// Why some of these tests run alone.
const CPU: &str = "the recorder must get a CPU at once, or samples are lost";

pub(super) const TESTS: &[Test] = &[
    Test::new("a_command_loses_no_samples_by_larger_copies", launched).exclusive(CPU),
    Test::new("a_process_loses_no_samples_by_larger_copies", attached).exclusive(CPU),
];

/// The depth of the recursion. Its stack of 40 kB is cut in the first copies and whole in the larger ones.
const DEPTH: usize = 150;

/// Markers say when a thread was on a CPU. They come from other records than the samples.
const OPTIONS: [&str; 6] = ["-v", "-r", "1000", "--call-graph", "dwarf", "--cswitch-markers"];

/// The time between two samples of a thread that has the CPU, in milliseconds.
const PERIOD: f64 = 1.0;

/// The time before and after the switch in which samples are checked, in milliseconds. The events are
/// switched again after 50.
const NEAR: f64 = 100.0;

/// Tests the clocks of the command's control group, one on each CPU.
fn launched(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recursion = test.workload("recursion").display().to_string();
    let command = ["taskset", "-c", "0", &recursion, "1500", &DEPTH.to_string()];
    let recorded = test.record_command(&command).options(&OPTIONS).run_well()?;
    expect_none_lost(&recorded.profile, &recorded.finished.stderr)
}

/// Tests the clocks of the thread itself.
fn attached(test: &Context<'_>) -> Verdict {
    need_root()?;
    let ready = test.fresh("ready");
    let call = test.program(test.workload("recursion")).args(&["1000000", &DEPTH.to_string()]);
    let call = call.under(&["taskset", "-c", "0"]).env("WORKLOAD_READY", ready.display().to_string());
    let target = call.start()?;
    target.wait_for_file(&ready)?;
    let output = test.fresh("attached.json.gz");
    let call = test.nyquist(&["record", "-s", "-d", "1.5", "-o"]).path(&output).args(&OPTIONS);
    let finished = call.args(&["-p", &target.pid().to_string()]).run()?.succeeded()?;
    end(target)?;
    expect_none_lost(&Profile::read(&output)?, &finished.stderr)
}

fn expect_none_lost(profile: &Profile, stderr: &str) -> Verdict {
    if !stderr.contains("by the CPU clock") {
        return skip(
            "a cycle counter is sampled by here, and its intervals change with the processor's speed",
        );
    }
    expect_contains("stderr", stderr, "More of each stack was copied")?;
    expect_eq("samples that the kernel has dropped", in_all(profile), 0.0)?;
    let threads: Vec<&Thread> =
        profile.threads.iter().filter(|thread| thread.process == "recursion").collect();
    expect_eq("threads", threads.len(), 1)?;
    let times: Vec<f64> = threads[0].samples.iter().map(|sample| sample.time).collect();
    let is_whole = |stack: &[&super::profile::Frame]| {
        stack.iter().filter(|frame| frame.function == "descend").count() == DEPTH
    };
    // The first copies hold 120 levels, so the first whole stack comes from a larger copy.
    let first_whole = threads[0].stacks().position(|(stack, _)| is_whole(&stack));
    let Some(first_whole) = first_whole else { return expect(false, "no stack is whole") };
    let stays = markers(profile)?.into_iter().filter(|marker| marker.name == "Running on CPU");
    let stays: Vec<[f64; 2]> = stays.map(|stay| [stay.start, stay.end]).collect();
    expect_even(&times, &stays, first_whole)
}

/// How long a thread was on a CPU between two times.
fn on_cpu(stays: &[[f64; 2]], from: f64, to: f64) -> f64 {
    stays.iter().map(|[start, end]| (end.min(to) - start.max(from)).max(0.0)).sum()
}

/// Checks that samples are about one period of CPU time apart, from [`NEAR`] before the switch to [`NEAR`]
/// after it. The switch comes before the sample at `first_whole`. The new clock starts with a period of its
/// own, so the two samples around the switch can be nearly two periods apart.
fn expect_even(times: &[f64], stays: &[[f64; 2]], first_whole: usize) -> Verdict {
    let switch = times[first_whole];
    let near: Vec<f64> = times.iter().copied().filter(|time| (time - switch).abs() < NEAR).collect();
    let gaps = near.windows(2).map(|pair| (on_cpu(stays, pair[0], pair[1]), pair[1]));
    let gaps: Vec<(f64, f64)> = gaps.collect();
    let time: f64 = gaps.iter().map(|(gap, _)| gap).sum();
    expect_measured(
        time > 0.5 * NEAR,
        format_args!("the thread was on a CPU for only {time:.1} ms around the switch"),
    )?;
    let description =
        |what: &str, gap: Option<&(f64, f64)>| format!("{what} of {gap:?}, the switch at {switch:.1} ms");
    let longest = gaps.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let shortest = gaps.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    expect_measured(longest.is_some_and(|gap| gap.0 < 2.5 * PERIOD), description("a gap", longest))?;
    expect_measured(
        shortest.is_some_and(|gap| gap.0 > 0.25 * PERIOD),
        description("two samples within", shortest),
    )?;
    let (count, due) = (gaps.len() as f64, time / PERIOD);
    let range = 0.97 * due - 2.0..1.03 * due + 2.0;
    expect_measured(range.contains(&count), format_args!("{count} samples around the switch, not {range:?}"))
}

#[cfg(test)]
mod tests {
    use super::expect_even;

    /// Checks 400 samples of a thread that always has the CPU. Some of them are left out or doubled.
    fn judged(times: impl Iterator<Item = f64>) -> bool {
        let times: Vec<f64> = times.collect();
        expect_even(&times, &[[0.0, 400.0]], times.partition_point(|time| *time < 200.5)).is_ok()
    }

    fn each_ms() -> impl Iterator<Item = f64> {
        (0..400).map(f64::from)
    }

    #[test]
    fn losses_and_doubles_around_the_switch_are_seen() {
        assert!(judged(each_ms()));
        // The first period of the new clock begins with the switch.
        assert!(judged(each_ms().map(|time| if time > 200.0 { time + 0.9 } else { time })));
        assert!(!judged(each_ms().filter(|time| !(199.0..=200.0).contains(time))));
        let doubled = (0..201).map(f64::from).chain([200.1]).chain((201..400).map(f64::from));
        assert!(!judged(doubled));
        assert!(!judged(each_ms().filter(|time| *time < 200.0 || *time % 10.0 != 0.0)));
    }

    #[test]
    fn a_thread_that_has_no_cpu_has_no_samples() {
        let times: Vec<f64> = each_ms().filter(|time| !(150.0..180.0).contains(time)).collect();
        let stays = [[0.0, 149.5], [179.5, 400.0]];
        let first_whole = times.partition_point(|time| *time < 200.5);
        assert!(expect_even(&times, &stays, first_whole).is_ok());
        assert!(expect_even(&times, &[[0.0, 400.0]], first_whole).is_err());
    }
}
