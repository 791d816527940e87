//! Losses between the kernel and the recorder: how many, when and where, as markers and in the summary.

use anyhow::Context as _;

use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_within, need_root, skip,
};
use super::kept_records::expect_same_samples;
use super::markers::{Marker, markers};
use super::perf_data::{import, run_perf};
use super::profile::Profile;
use super::ptrace::children;
use super::recorded::{Prepared, Recorded, Recording};
use super::running_targets::{is_alive, process_cpu_ms};
use super::spare::watched;
use super::test::Test;

/// Why some of these tests run alone.
const CPU: &str = "which samples are lost depends on how soon the recorder gets a CPU";

pub(super) const TESTS: &[Test] = &[
    Test::new("losses_are_markers_with_their_time_and_cpu", markers_of_losses).exclusive(CPU),
    Test::new("time_whose_samples_were_lost_is_not_sampled", time_of_lost).exclusive(CPU),
    Test::new("time_whose_counts_were_lost_is_counted_once", counts_of_lost).exclusive(CPU),
    Test::new("nothing_is_lost_beside_hundreds_of_threads", many_threads).exclusive(CPU),
    Test::new("losses_perf_reports_twice_are_counted_once", counted_once),
];

/// The rate at which samples are lost, in Hz.
const RATE: f64 = 10_000.0;

/// The CPU time of the program while nothing reads the rings, in milliseconds: several times what they hold.
const UNREAD_MS: f64 = 1800.0;

/// If a recorder cannot run for a while, the rings get full and records are lost.
fn markers_of_losses(test: &Context<'_>) -> Verdict {
    let retained = test.fresh("kept.data");
    let kept_path = retained.display().to_string();
    // The program runs on one CPU, because another CPU reports its losses only with its next record.
    let program = test.workload("shares").display().to_string();
    let recording = test.record_command(&["taskset", "-c", "0", &program, "3000"]);
    let recording = recording.options(&["-r", "10000", "--perf-data", &kept_path]);
    let recorded = recorded_with_losses(test, &recording)?;
    let lost = losses(&recorded.profile)?;
    expect(!lost.is_empty(), "nothing was lost")?;
    let records = records_of(&lost);
    expect_eq("the sum of all markers and the profile's", records, in_all(&recorded.profile))?;
    expect_within(
        "samples there and lost",
        recorded.profile.count() + records,
        recorded.truth()?.cpu * RATE,
        0.05,
    )?;
    for marker in &lost {
        expect_eq("the CPU", marker.data["cpu"].as_str(), Some("CPU 0"))?;
        let due = records_of(std::slice::from_ref(marker)) / RATE;
        let found = (marker.end - marker.start) / 1e3;
        // A marker begins with the last sample before the loss, up to an interval before the lost samples.
        let is_as_long = (found - due).abs() <= 0.1 * due + 1.0 / RATE;
        expect_measured(is_as_long, format_args!("samples were lost for {found} s, not {due}"))?;
    }
    let (imported, _) = import(test, &retained, &[])?;
    expect_same_samples(&imported, &recorded.profile)?;
    let imported = losses(&imported)?;
    let begun = |lost: &[Marker]| -> Vec<_> {
        lost.iter().map(|marker| (marker.start, marker.data.clone())).collect()
    };
    expect_eq("losses of the recording that was kept", begun(&imported), begun(&lost))?;
    let report = test.nyquist(&["report", "--markers"]).path(&recorded.path).run()?.succeeded()?;
    expect_contains("report --markers", &report.stdout_text(), "Lost samples")
}

/// If the time of threads is known, the time of lost samples counts neither for the kernel nor for the next
/// sample.
fn time_of_lost(test: &Context<'_>) -> Verdict {
    let recording = test.record(&["shares", "3000"]).options(&["-r", "10000"]).by_plain_user();
    let recorded = recorded_with_losses(test, &recording)?;
    let (profile, due) = (&recorded.profile, recorded.truth()?.cpu * RATE);
    expect_within("all CPU time", profile.total(), due, 0.05)?;
    let not_sampled = profile.self_share("[not sampled]") * profile.total();
    expect_within("what was not sampled", not_sampled, in_all(profile), 0.1)?;
    let kernel = profile.self_share("[kernel: not permitted]");
    expect(kernel < 0.1, format_args!("{kernel} of the time is the kernel's"))
}

/// If the records of what ended threads have used are lost, their time is that of no other thread: half of it was
/// sampled before.
fn counts_of_lost(test: &Context<'_>) -> Verdict {
    let go_on = test.fresh("go_on");
    let path = go_on.display().to_string();
    // On one CPU the kernel exchanges the counters of threads most often.
    let program = test.workload("pool").display().to_string();
    let recording = test.record_command(&["taskset", "-c", "0", &program, "6", "500", &path]).by_plain_user();
    let Prepared { call, profile, truth } = recording.prepare();
    let ready = test.fresh("ready");
    let recorder = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    recorder.wait_for_file(&ready)?;
    let program = *children(recorder.pid()).first().context("the program does not run")?;
    let half_ms = 6.0 * 500.0 / 2.0;
    recorder.wait_until("the first half of the work", || {
        process_cpu_ms(program).is_ok_and(|used| used > 0.97 * half_ms)
    })?;
    recorder.signal(libc::SIGSTOP)?;
    std::fs::write(&go_on, "").context("the threads cannot go on")?;
    recorder.wait_until("the program to end", || !is_alive(program))?;
    recorder.signal(libc::SIGCONT)?;
    let recorded = Recorded::read(recorder.wait()?.succeeded()?, &profile, &truth)?;
    expect_contains("stderr", &recorded.finished.stderr, "were dropped")?;
    let used_ms = recorded.truth()?.cpu * 1000.0;
    expect_within("all CPU time in milliseconds", recorded.profile.total(), used_ms, 0.05)
}

/// Makes a recording of a program, and stops the recorder while the program works.
fn recorded_with_losses(test: &Context<'_>, recording: &Recording<'_>) -> Result<Recorded, Stop> {
    let Prepared { call, profile, truth } = recording.prepare();
    let ready = test.fresh("ready");
    let recorder = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    recorder.wait_for_file(&ready)?;
    recorder.wait_until_recording()?;
    recorder.signal(libc::SIGSTOP)?;
    let program = *children(recorder.pid()).first().context("the program does not run")?;
    let has_worked = || process_cpu_ms(program).is_ok_and(|used| used > UNREAD_MS);
    recorder.wait_until("the program to work", || has_worked() || !is_alive(program))?;
    recorder.signal(libc::SIGCONT)?;
    let recorded = Recorded::read(recorder.wait()?.succeeded()?, &profile, &truth)?;
    expect_contains("stderr", &recorded.finished.stderr, "were dropped")?;
    Ok(recorded)
}

/// The reader gets a CPU at once, even if many threads want it. If it had to wait for its turn, it would be
/// too late.
fn many_threads(test: &Context<'_>) -> Verdict {
    need_root()?;
    let options = ["-v", "-r", "10000"];
    let recording = test.record(&["fixed_work-fp", "1000", "200"]).options(&options);
    let watched = watched(|| recording.run_well())?;
    let recorded = &watched.result;
    let (samples, lost) = (recorded.profile.count(), in_all(&recorded.profile));
    let stderr = &recorded.finished.stderr;
    expect_contains("stderr", stderr, "Copying 64 kB of each stack into")?;
    expect_measured(lost == 0.0, format_args!("{lost} were lost beside {samples} samples"))?;
    let gaps: Vec<String> = markers(&recorded.profile)?.into_iter().map(|marker| marker.name).collect();
    let has_gap = gaps.iter().any(|name| name == "Lost samples" || name == "Sampling paused");
    expect_measured(!has_gap, format_args!("there are markers of gaps: {gaps:?}"))?;
    for word in ["dropped", "paused"] {
        expect_measured(!stderr.contains(word), format_args!("something was {word}: {stderr}"))?;
    }
    watched.expect_samples(samples, recorded.truth()?.cpu, RATE, 0.02)
}

/// The kernel writes a record for each loss. At the end of the file, perf also writes the number of losses
/// for each event.
fn counted_once(test: &Context<'_>) -> Verdict {
    let recording = test.fresh("lost.data");
    let record = || {
        let options = ["record", "-q", "-N", "-F", "20000", "--call-graph", "dwarf", "-m", "4", "-o"];
        let call = test.program("perf").args(&options).path(&recording).args(&["--"]);
        call.path(&test.workload("shares")).args(&["300"]).run()
    };
    match run_perf(record) {
        Ok(finished) => finished.succeeded()?,
        Err(error) => return skip(format_args!("there is no perf here: {error}")),
    };
    let call = test.program("perf").args(&["script", "--show-lost-events", "-F", "time,ip", "-i"]);
    let text = call.path(&recording).run()?.succeeded()?.stdout_text();
    let lost_by_perf =
        text.lines().filter_map(|line| line.split_once("PERF_RECORD_LOST lost ")?.1.trim().parse().ok());
    let lost_by_perf: Vec<f64> = lost_by_perf.collect();
    if lost_by_perf.is_empty() {
        return skip("perf has lost nothing");
    }
    let (profile, printed) = import(test, &recording, &["--no-symbols"])?;
    expect_contains("stderr", &printed, "lost")?;
    let lost = losses(&profile)?;
    let records: Vec<f64> =
        lost.iter().take(lost_by_perf.len()).map(|marker| records_of(std::slice::from_ref(marker))).collect();
    expect_eq("losses", &records, &lost_by_perf)?;
    // Losses at the very end have no record. They are only in perf's sums.
    let (lost_by_perf, all) = (lost_by_perf.iter().sum::<f64>(), in_all(&profile));
    expect(
        (lost_by_perf..lost_by_perf * 1.5).contains(&all),
        format_args!("{all} were lost, of which {lost_by_perf} have records"),
    )?;
    expect_eq("the sum of all markers and the profile's", records_of(&lost), all)
}

fn losses(profile: &Profile) -> anyhow::Result<Vec<Marker>> {
    Ok(markers(profile)?.into_iter().filter(|marker| marker.name == "Lost samples").collect())
}

fn records_of(losses: &[Marker]) -> f64 {
    losses.iter().filter_map(|marker| marker.data["records"].as_f64()).sum()
}

pub(super) fn in_all(profile: &Profile) -> f64 {
    profile.json["meta"]["nyquist"]["lostSamples"].as_f64().unwrap_or_default()
}
