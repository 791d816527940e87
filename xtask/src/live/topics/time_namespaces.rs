//! Recordings with different clocks: the recorder or the program is in a time namespace.

use super::by::BOTH;
use super::context::Context;
use super::expect::{Verdict, expect, expect_eq, expect_measured, need_root};
use super::markers::markers;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_recorder_in_a_time_namespace_keeps_time", recorder).in_pairs(SHARES),
    Test::new("markers_keep_time_in_a_time_namespace", program),
    Test::new("jitdumps_keep_time_in_a_time_namespace", jitdump).in_pairs(SHARES),
];

/// A clock that is a day ahead. On every kernel, the forking process is in the namespace.
const AHEAD: [&str; 5] = ["unshare", "-T", "--fork", "--monotonic", "86400"];

fn recorder(test: &Context<'_>) -> Verdict {
    need_root()?;
    for by in BOTH {
        let recording = test.record(&["shares", "400"]).by(by).with(|call| call.under(&AHEAD));
        let recorded = recording.run_well()?;
        let times: Vec<f64> = recorded
            .profile
            .threads
            .iter()
            .flat_map(|thread| &thread.samples)
            .map(|sample| sample.time)
            .collect();
        let (first, last) =
            (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
        expect_measured(
            last - first > 300.0,
            format_args!("samples of 400 ms of work from {first} to {last} ms"),
        )?;
        let end = recorded.profile.json["meta"]["profilingEndTime"].as_f64().unwrap_or_default();
        expect(
            last <= end && end < 600_000.0,
            format_args!("the recording ends at {end} ms, the last sample is at {last} ms"),
        )?;
    }
    Ok(())
}

/// The program's clock differs from the recorder's, or both differ from the clock of the kernel's records.
fn program(test: &Context<'_>) -> Verdict {
    need_root()?;
    let workload = test.workload("markers").display().to_string();
    let args: Vec<&str> = AHEAD.into_iter().chain([&*workload, "records", "1000"]).collect();
    let ahead = test.record_command(&args).run_well()?;
    let both = test.record(&["markers", "records"]).with(|call| call.under(&AHEAD)).run_well()?;
    let usual = markers(&test.record(&["markers", "records"]).run_well()?.profile)?;
    for recorded in [ahead, both] {
        let found = markers(&recorded.profile)?;
        let names = |markers: &[super::markers::Marker]| -> Vec<String> {
            markers.iter().map(|marker| marker.name.clone()).collect()
        };
        expect_eq("markers", names(&found), names(&usual))?;
        let end = recorded.profile.json["meta"]["profilingEndTime"].as_f64().unwrap_or_default();
        let sane =
            found.iter().all(|marker| 0.0 <= marker.start && marker.start <= marker.end && marker.end <= end);
        expect(sane, "a marker lies outside of the recording")?;
    }
    Ok(())
}

/// Code that seems to be made a day later would have no name.
fn jitdump(test: &Context<'_>) -> Verdict {
    need_root()?;
    let workload = test.workload("dumped_code").display().to_string();
    let args: Vec<&str> = AHEAD.into_iter().chain([&*workload, "400", "made_here"]).collect();
    let profile = test.record_command(&args).run_well()?.profile;
    let share = profile.total_share("dumped_code");
    expect_measured(share > 0.5, format_args!("{share:.3} of the time is in code that was made"))
}
