//! Counters: the profile contains a program's use of memory, files, threads and the CPU.

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::profile::Profile;
use super::recorded::{Recorded, Recording};
use super::test::{SHARES, Test};

/// Why some of these tests run alone.
const LATE: &str = "a counter that is read late misses what it was to show";

pub(super) const TESTS: &[Test] = &[
    Test::new("what_a_program_uses_is_counted", used).exclusive(LATE),
    Test::new("a_plain_users_program_is_counted_too", by_plain_user).exclusive(LATE),
    Test::new("what_a_program_uses_last_is_counted", used_last),
    Test::new("a_parent_has_not_what_its_children_wrote", written_by_child),
    Test::new("the_report_says_what_was_used", reported).exclusive(LATE),
    Test::new("an_attached_process_counts_from_then_on", attached).in_pairs(SHARES),
    Test::new("without_counters_there_are_none", left_out),
];

/// A megabyte, as programs count it.
const MB: f64 = 1_048_576.0;

/// The name of the workload's part that works.
const WORK: &str = "work_with_all";

/// Records the workload, which uses 100 MB, writes 50 MB, reads 20, opens 40 files and makes 5 threads.
fn recording<'a>(test: &'a Context<'a>) -> Recording<'a> {
    let folder = test.path("").display().to_string();
    test.record(&["uses", &folder, "1000"])
}

/// The values of a process's counter, each as the sum of the changes so far. `None` if there is no such
/// counter.
fn values(profile: &Profile, pid: u64, name: &str) -> Option<Vec<f64>> {
    let counters = profile.json["counters"].as_array()?;
    let pid = pid.to_string();
    let counter = counters.iter().find(|counter| counter["pid"] == *pid && counter["name"] == *name)?;
    let changes =
        counter["samples"]["count"].as_array()?.iter().map(|change| change.as_f64().unwrap_or(f64::NAN));
    let sums = changes.scan(0.0, |sum, change| {
        *sum += change;
        Some(*sum)
    });
    Some(sums.collect())
}

/// The highest value of a counter.
fn highest(profile: &Profile, pid: u64, name: &str) -> Result<f64, Stop> {
    let values = values(profile, pid, name).unwrap_or_default();
    expect(!values.is_empty(), format_args!("{pid} has no counter {name}"))?;
    Ok(values.into_iter().fold(f64::MIN, f64::max))
}

fn expect_used(recorded: &Recorded) -> Verdict {
    let (profile, truth) = (&recorded.profile, recorded.truth()?);
    for (name, least, most) in [
        ("Memory", 100.0 * MB, 130.0 * MB),
        ("Written", 50.0 * MB, 51.0 * MB),
        ("Read", 20.0 * MB, 22.0 * MB),
        ("Page faults", 100.0, 60_000.0),
        ("Open files", 43.0, 60.0),
        ("Threads", 6.0, 6.0),
        ("Context switches", 1.0, 1e6),
    ] {
        let found = highest(profile, truth.pid, name)?;
        expect((least..=most).contains(&found), format_args!("{name} is {found}, not {least} to {most}"))?;
    }
    let cpu = highest(profile, truth.pid, "CPU")? / 1e3;
    // The last reading is up to 50 ms before the end, and earlier on a busy machine.
    let (least, most) = (truth.part(WORK)? * 0.8, truth.cpu * 1.05);
    expect_measured((least..=most).contains(&cpu), format_args!("{cpu} s of CPU, not {least} to {most}"))?;
    let pids: Vec<u64> = profile
        .threads
        .iter()
        .filter_map(|thread| thread.pid.parse().ok())
        .filter(|pid| *pid != truth.pid)
        .collect();
    let child = pids.first().copied().unwrap_or_default();
    let memory = highest(profile, child, "Memory")?;
    expect((30.0 * MB..60.0 * MB).contains(&memory), format_args!("the child has {memory} bytes"))?;
    // It always has one thread.
    expect_eq("threads of the child", values(profile, child, "Threads"), None)
}

fn used(test: &Context<'_>) -> Verdict {
    expect_used(&recording(test).run_well()?)
}

fn by_plain_user(test: &Context<'_>) -> Verdict {
    expect_used(&recording(test).by_plain_user().run_well()?)
}

/// The program ends before or soon after the first periodic reading.
fn used_last(test: &Context<'_>) -> Verdict {
    let output = format!("of={}", test.path("written").display());
    let args = ["dd", "if=/dev/zero", &output, "bs=1M", "count=24", "status=none"];
    let profile = test.record_command(&args).run_well()?.profile;
    let counters = profile.json["counters"].as_array().cloned().unwrap_or_default();
    for name in ["Read", "Written"] {
        let pid = counters.iter().find(|counter| counter["name"] == name).map(|counter| &counter["pid"]);
        let pid = pid.and_then(|pid| pid.as_str()?.parse().ok()).unwrap_or_default();
        let found = highest(&profile, pid, name)?;
        expect((24.0 * MB..25.0 * MB).contains(&found), format_args!("{name} is {found}, not 24 MB"))?;
    }
    Ok(())
}

/// The kernel adds the bytes of a child to those of the process that waits for it.
fn written_by_child(test: &Context<'_>) -> Verdict {
    let dd = format!("dd if=/dev/zero of='{}' bs=1M count=24 status=none", test.path("written").display());
    let script = format!("{dd}; {dd}; exec dd if=/dev/zero of=/dev/null bs=1M count=3 status=none");
    let profile = test.record_command(&["sh", "-c", &script]).run_well()?.profile;
    let pid = profile.threads.first().and_then(|thread| thread.pid.parse().ok()).unwrap_or_default();
    for name in ["Read", "Written"] {
        let found = highest(&profile, pid, name)?;
        expect((3.0 * MB..4.0 * MB).contains(&found), format_args!("{name} is {found}, not 3 MB"))?;
    }
    Ok(())
}

fn reported(test: &Context<'_>) -> Verdict {
    let recorded = recording(test).run_well()?;
    let pid = recorded.truth()?.pid;
    let report = test.nyquist(&["report"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    let line = report.lines().find(|line| line.starts_with(&format!("uses ({pid}): ")));
    let line = line.unwrap_or_default();
    for part in ["% of a CPU", "memory up to 10", "read 2", "wrote 50.", "up to 6 threads", "open files"] {
        expect_contains("report", line, part)?;
    }
    let json = test.nyquist(&["report", "--json"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    let json: serde_json::Value = serde_json::from_str(&json)?;
    let counters = json["counters"].as_array().cloned().unwrap_or_default();
    let written = counters.iter().find(|row| row["pid"] == *pid.to_string() && row["counter"] == "Written");
    let written = written.cloned().unwrap_or_default();
    expect_eq("kind and unit", (&written["kind"], &written["unit"]), (&"total".into(), &"bytes".into()))?;
    expect(written["value"].as_f64() >= Some(50.0 * MB), format_args!("{written} was written"))
}

/// The recording does not contain earlier use of a process, except for its present memory.
fn attached(test: &Context<'_>) -> Verdict {
    let (ready, output) = (test.fresh("ready"), test.fresh("profile.json.gz"));
    let program = test.program(test.workload("uses")).path(&test.path("")).args(&["60000"]);
    let program = program.start()?;
    let has_all = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap_or_default();
        status.lines().any(|line| line == "Threads:\t6")
    };
    program.wait_until("its threads", has_all)?;
    let pid = program.pid().to_string();
    let recorder = test.nyquist(&["record", "-s", "-d", "1", "-p", &pid, "-o"]).path(&output);
    recorder.run()?.succeeded()?;
    drop(ready);
    let (profile, pid) = (Profile::read(&output)?, u64::from(program.pid()));
    let memory = highest(&profile, pid, "Memory")?;
    expect(memory > 100.0 * MB, format_args!("it has {memory} bytes"))?;
    expect_eq("what it wrote meanwhile", values(&profile, pid, "Written"), None)?;
    let cpu = highest(&profile, pid, "CPU")?;
    expect(cpu > 0.0 && cpu < 1500.0, format_args!("it used {cpu} ms in a second"))
}

fn left_out(test: &Context<'_>) -> Verdict {
    let recorded = recording(test).options(&["--no-counters"]).run_well()?;
    let counters = recorded.profile.json.get("counters").and_then(|counters| counters.as_array());
    expect(counters.is_none_or(Vec::is_empty), "there are counters")
}
