//! Recordings that are controlled while they run: the last part that is kept, pauses, saves on request and by triggers,
//! and `nyquist ctl`. The program does what files of a folder say, so each test waits for states and not for times.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::by::By;
use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::invocation::{Invocation, Running};
use super::json_docs::Documents;
use super::profile::Profile;
use super::running_targets::process_cpu_ms;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("the_last_part_alone_is_kept", |test| last(test, By::Best, |call| call)).in_pairs(SHARES),
    Test::new("a_plain_users_last_part_alone_is_kept", |test| {
        last(test, By::Best, Invocation::by_plain_user)
    })
    .in_pairs(SHARES),
    Test::new("the_last_part_alone_is_kept_by_ptrace", |test| last(test, By::Ptrace, |call| call))
        .in_pairs(SHARES),
    Test::new("a_recording_is_saved_while_it_runs", saves),
    Test::new("a_pause_is_in_no_profile", |test| pauses(test, By::Best, |call| call)).in_pairs(SHARES),
    Test::new("a_plain_users_pause_is_in_no_profile", |test| {
        pauses(test, By::Best, Invocation::by_plain_user)
    })
    .in_pairs(SHARES),
    Test::new("a_pause_is_in_no_profile_by_ptrace", |test| pauses(test, By::Ptrace, |call| call))
        .in_pairs(SHARES),
    Test::new("an_attached_recording_pauses", attached).in_pairs(SHARES),
    Test::new("a_recording_begins_at_its_start_request", |test| begins(test, |call| call)),
    Test::new("a_plain_users_recording_begins_late", |test| begins(test, Invocation::by_plain_user)),
    Test::new("a_recording_begins_after_its_delay", delays),
    Test::new("a_busy_cpu_triggers_a_save", |test| {
        triggered(test, &["cpu > 50% for 1s"], &["nap"], "second_phase")
    }),
    Test::new("memory_triggers_a_save", |test| triggered(test, &["rss > 200M"], &["nap"], "memory")),
    Test::new("a_long_lock_triggers_a_save", |test| {
        triggered(test, &["wait lock > 500ms", "--off-cpu"], &["second_phase"], "wait")
    }),
    Test::new("a_long_marker_triggers_a_save", marker),
    Test::new("idleness_triggers_no_save", no_trigger),
    Test::new("saves_have_a_pause_and_a_limit", limits),
    Test::new("others_recordings_do_not_obey", others),
    Test::new("what_cannot_be_controlled_is_a_sentence", refusals),
];

/// How long each phase works, in ms of CPU time.
const PHASE: f64 = 1500.0;

/// A program that does what files say, while it is recorded.
struct Controlled<'a> {
    test: &'a Context<'a>,
    folder: PathBuf,
    output: PathBuf,
    recorder: Running<'a>,
    /// The program's number.
    pid: u32,
}

impl<'a> Controlled<'a> {
    /// Records the program with these options.
    fn start(
        test: &'a Context<'a>,
        by: By,
        options: &[&str],
        adapt: fn(Invocation<'a>) -> Invocation<'a>,
    ) -> Result<Self> {
        let (folder, output, ready) =
            (test.fresh("folder"), test.fresh("profile.json.gz"), test.fresh("ready"));
        fs::create_dir(&folder)?;
        let program = test.workload("phases");
        let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options);
        let call = call.args(&["--"]).path(&program).path(&folder);
        let recorder =
            adapt(by.adapt(test, call)).env("WORKLOAD_READY", ready.display().to_string()).start()?;
        recorder.wait_for_file(&ready)?;
        let pid = test.process_of(&program).context("the program does not run")?;
        Ok(Self { test, folder, output, recorder, pid })
    }

    /// Creates a file that the program looks for.
    fn say(&self, name: &str) -> Result<()> {
        Ok(fs::write(self.folder.join(name), "")?)
    }

    fn unsay(&self, name: &str) -> Result<()> {
        Ok(fs::remove_file(self.folder.join(name))?)
    }

    /// Waits until the program has used this much more CPU time, in ms. Returns how much it has used.
    fn wait_for_work(&self, ms: f64) -> Result<f64> {
        let begun = process_cpu_ms(self.pid)?;
        let used = || process_cpu_ms(self.pid).map_or(0.0, |now| now - begun);
        self.recorder.wait_until("the program to work", || used() > ms)?;
        Ok(used())
    }

    /// Ends the program, and reads the profile.
    fn end(self) -> Result<(Profile, String)> {
        self.say("end")?;
        let printed = self.recorder.wait()?.succeeded()?.stderr;
        Ok((Profile::read(&self.output)?, printed))
    }

    /// Asks the recording by `nyquist ctl`.
    fn ctl(&self, action: &str, adapt: fn(Invocation<'a>) -> Invocation<'a>) -> Result<Value> {
        ctl(self.test, &self.number()?, action, adapt)
    }

    /// The number of the recorder, which is a child where a filter or another program starts it.
    fn number(&self) -> Result<String> {
        self.recorder
            .wait_until("the recorder's number", || number_in(&self.recorder.stderr_so_far()).is_some())?;
        number_in(&self.recorder.stderr_so_far()).context("no number")
    }

    /// The profiles that were saved so far, beside that at the end.
    fn saved(&self) -> Vec<PathBuf> {
        let entries =
            fs::read_dir(self.output.parent().unwrap_or(Path::new("."))).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.path());
        let mut saved: Vec<_> =
            names.filter(|path| path.display().to_string().contains("profile-20")).collect();
        saved.extend(self.saved_by_name());
        saved.sort();
        saved.dedup();
        saved
    }

    fn saved_by_name(&self) -> Vec<PathBuf> {
        let printed = self.recorder.stderr_so_far();
        let names = printed
            .lines()
            .filter_map(|line| Some(line.strip_prefix("Saved ")?.split_once(" (")?.0.to_owned()));
        names.map(|name| self.test.path("").join(name)).collect()
    }

    fn wait_for_saves(&self, count: usize) -> Result<Vec<PathBuf>> {
        self.recorder.wait_until("the saves", || self.saved_by_name().len() >= count)?;
        Ok(self.saved())
    }
}

/// The number that a recorder tells for `nyquist ctl` and `kill`.
fn number_in(printed: &str) -> Option<String> {
    let after = |text: &str| {
        printed.split_once(text).map(|(_, rest)| rest.split([' ', '`']).next().unwrap_or_default())
    };
    after("`kill -USR1 ").or_else(|| after("`nyquist ctl ")).map(str::to_owned)
}

fn ctl<'a>(
    test: &'a Context<'a>,
    number: &str,
    action: &str,
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> Result<Value> {
    let answer = adapt(test.nyquist(&["ctl", number, action, "--json"])).run()?.succeeded()?;
    Ok(serde_json::from_str(&answer.stdout_text())?)
}

/// Works in the first phase, then in the second one for longer than what is kept.
fn last<'a>(test: &'a Context<'a>, by: By, adapt: fn(Invocation<'a>) -> Invocation<'a>) -> Verdict {
    let controlled = Controlled::start(test, by, &["--last", "500ms"], adapt)?;
    controlled.wait_for_work(PHASE / 3.0)?;
    controlled.say("second_phase")?;
    controlled.wait_for_work(PHASE)?;
    let (profile, printed) = controlled.end()?;
    expect_eq("the share of the first phase", profile.total_share("first_phase"), 0.0)?;
    let second = profile.share_of_taken("second_phase");
    expect_measured(second > 0.95, format_args!("{second} of what is kept is of the second phase"))?;
    let retained = profile.total();
    expect_measured((50.0..=560.0).contains(&retained), format_args!("{retained} samples are kept"))?;
    let latest = profile
        .threads
        .iter()
        .flat_map(|thread| &thread.samples)
        .map(|sample| sample.time)
        .fold(0.0, f64::max);
    expect(latest <= 600.0, format_args!("the last sample is {latest} ms after the profile's zero"))?;
    expect(
        !printed.contains("more of CPU time"),
        format_args!("what is not kept is called missed: {printed}"),
    )
}

/// Three saves: by the signal, by `nyquist ctl`, and the one at the end.
fn saves(test: &Context<'_>) -> Verdict {
    let controlled = Controlled::start(test, By::Best, &["--last", "60s"], |call| call)?;
    controlled.wait_for_work(PHASE / 3.0)?;
    let number: i32 = controlled.number()?.parse()?;
    nix_kill(number)?;
    let first = controlled.wait_for_saves(1)?;
    controlled.say("second_phase")?;
    controlled.wait_for_work(PHASE / 3.0)?;
    let answer = controlled.ctl("save", |call| call)?;
    let second = answer["saved"].as_str().context("no file is named")?.to_owned();
    let status = controlled.ctl("status", |call| call)?;
    expect_eq("the state", status["state"].as_str(), Some("recording"))?;
    expect_eq("the saves", status["saves"].as_u64(), Some(2))?;
    Documents::read()?.hold(&["ctl"], &status)?;
    controlled.say("third_phase")?;
    controlled.wait_for_work(PHASE / 3.0)?;
    let first = Profile::read(&first[0])?;
    let (last, printed) = controlled.end()?;
    let phases = |profile: &Profile| {
        ["first_phase", "second_phase", "third_phase"].map(|phase| profile.total_share(phase) > 0.05)
    };
    let found = [phases(&first), phases(&Profile::read(Path::new(&second))?), phases(&last)];
    expect_eq(
        "the phases of each save",
        found,
        [[true, false, false], [true, true, false], [true, true, true]],
    )?;
    expect_contains("what was said", &printed, "(SIGUSR1); the recording goes on")?;
    expect_contains("the profile's facts", &first.json["meta"]["extra"].to_string(), "SIGUSR1")
}

/// Sends `SIGUSR1`.
fn nix_kill(pid: i32) -> Result<()> {
    let status = std::process::Command::new("kill").args(["-USR1", &pid.to_string()]).status()?;
    anyhow::ensure!(status.success(), "the signal could not be sent");
    Ok(())
}

/// Pauses in the second phase, and counts what was used outside of it.
fn pauses<'a>(test: &'a Context<'a>, by: By, adapt: fn(Invocation<'a>) -> Invocation<'a>) -> Verdict {
    let controlled = Controlled::start(test, by, &["--start-paused"], adapt)?;
    controlled.ctl("start", adapt)?;
    let before = controlled.wait_for_work(PHASE)?;
    pause_and_end(controlled, before, adapt)
}

/// Pauses a recording in the second phase; `before` was used until now.
fn pause_and_end<'a>(
    controlled: Controlled<'a>,
    before: f64,
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> Verdict {
    let state = controlled.ctl("stop", adapt)?["state"].clone();
    expect_eq("the state in the pause", state.as_str(), Some("paused"))?;
    controlled.say("second_phase")?;
    controlled.wait_for_work(PHASE)?;
    controlled.say("third_phase")?;
    controlled.wait_for_work(50.0)?;
    controlled.ctl("start", adapt)?;
    let after = controlled.wait_for_work(PHASE / 2.0)?;
    let (profile, printed) = controlled.end()?;
    expect_eq("the share of the pause", profile.total_share("second_phase"), 0.0)?;
    // Requests and the program's end take a moment, in which it works on.
    let (total, due) = (profile.total(), before + after);
    let within = due * 0.95 - 10.0..due * 1.1 + 300.0;
    expect_measured(within.contains(&total), format_args!("{total} samples, not {within:?}"))?;
    let unseen = 1.0 - profile.sampled() / total;
    expect_measured(unseen < 0.1, format_args!("{unseen} of the time has no samples"))?;
    expect_contains("what was said", &printed, "The recording pauses")?;
    expect(profile.json.to_string().contains("Recording paused"), "no marker shows the pause")
}

/// The same with a program that ran before.
fn attached(test: &Context<'_>) -> Verdict {
    let (folder, output, ready) = (test.fresh("folder"), test.fresh("profile.json.gz"), test.fresh("ready"));
    fs::create_dir(&folder)?;
    let program = test.workload("phases");
    let call = test.program(&program).path(&folder).env("WORKLOAD_READY", ready.display().to_string());
    let running = call.start()?;
    running.wait_for_file(&ready)?;
    let pid = running.pid();
    let call = test.nyquist(&["record", "-s", "--last", "60s", "-p", &pid.to_string(), "-o"]).path(&output);
    let recorder = call.start()?;
    recorder.wait_until_recording()?;
    let controlled = Controlled { test, folder, output, recorder, pid };
    controlled.number()?;
    let before = controlled.wait_for_work(PHASE)?;
    pause_and_end(controlled, before, |call| call)?;
    running.wait()?.succeeded()?;
    Ok(())
}

/// The first phase is before the request to start.
fn begins<'a>(test: &'a Context<'a>, adapt: fn(Invocation<'a>) -> Invocation<'a>) -> Verdict {
    let controlled = Controlled::start(test, By::Best, &["--start-paused"], adapt)?;
    controlled.wait_for_work(PHASE / 3.0)?;
    controlled.say("second_phase")?;
    controlled.wait_for_work(50.0)?;
    // The recorded process's own number names the recording only if it was attached to.
    controlled.ctl("start", adapt)?;
    controlled.wait_for_work(PHASE / 3.0)?;
    let (profile, printed) = controlled.end()?;
    expect_eq("the share of the first phase", profile.total_share("first_phase"), 0.0)?;
    let second = profile.share_of_taken("second_phase");
    expect(second > 0.9, format_args!("{second} of the samples are of the second phase: {printed}"))
}

fn delays(test: &Context<'_>) -> Verdict {
    let controlled = Controlled::start(test, By::Best, &["--delay", "1s"], |call| call)?;
    controlled.recorder.wait_until("the delay to end", || {
        controlled.recorder.stderr_so_far().contains("The recording goes on")
    })?;
    controlled.say("second_phase")?;
    controlled.wait_for_work(PHASE / 3.0)?;
    let (profile, _) = controlled.end()?;
    let markers = profile.json.to_string();
    expect(markers.contains("Recording paused"), "no marker shows the delay")?;
    let second = profile.total_share("second_phase");
    expect(second > 0.5, format_args!("{second} of the samples are of the second phase"))
}

/// A condition that is not met saves nothing; then it is met, and one profile is saved.
fn triggered(test: &Context<'_>, trigger: &[&str], first: &[&str], then: &str) -> Verdict {
    let options = [&["--last", "60s", "--trigger"], trigger].concat();
    let controlled = Controlled::start(test, By::Best, &options, |call| call)?;
    for name in first {
        controlled.say(name)?;
    }
    controlled.number()?;
    // Long enough for the counters to be read and for a save to be seen, if there were one.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    expect_eq("the saves before", controlled.saved().len(), 0)?;
    controlled.say(then)?;
    if first == ["nap"] && then == "second_phase" {
        controlled.unsay("nap")?;
    }
    let saved = controlled.wait_for_saves(1)?;
    let profile = Profile::read(&saved[0])?;
    let (_, printed) = controlled.end()?;
    expect_contains("what was said", &printed, trigger[0])?;
    expect_contains("the profile's facts", &profile.json["meta"]["extra"].to_string(), trigger[0])?;
    if then == "wait" {
        let waits = profile.json.to_string();
        expect(waits.contains("wait_for_lock"), "the wait is not in the saved profile")?;
    }
    Ok(())
}

/// Two intervals, of a little more than 2 and 1 ms, have one name. The program then sleeps.
fn marker(test: &Context<'_>) -> Verdict {
    let saved = |limit: &str| -> Result<String> {
        let output = test.fresh("profile.json.gz");
        let trigger = format!("marker load file > {limit}");
        let call =
            test.nyquist(&["record", "-s", "--last", "60s", "--trigger", &trigger, "-o"]).path(&output);
        let call = call.args(&["--"]).path(&test.workload("markers")).args(&["records", "1500"]);
        Ok(call.run()?.succeeded()?.stderr)
    };
    expect_contains(
        "a marker that is long enough",
        &saved("1ms")?,
        "(marker load file > 1ms); the recording goes on",
    )?;
    let printed = saved("1s")?;
    expect(!printed.contains("; the recording goes on"), format_args!("a short marker is saved: {printed}"))
}

/// A lock of 800 ms is not one of two seconds, and naps are no waits that a trigger means.
fn no_trigger(test: &Context<'_>) -> Verdict {
    let options = ["--last", "60s", "--off-cpu", "--trigger", "wait > 2s", "--trigger", "wait rwlock > 1ms"];
    let controlled = Controlled::start(test, By::Best, &options, |call| call)?;
    controlled.say("nap")?;
    controlled.say("wait")?;
    controlled.number()?;
    // Longer than the limit of the trigger, which would count a wait that is not seen to end.
    std::thread::sleep(std::time::Duration::from_secs(3));
    expect_eq("the saves", controlled.saved().len(), 0)?;
    controlled.end()?;
    Ok(())
}

/// Requests by hand are saved up to the limit.
fn limits(test: &Context<'_>) -> Verdict {
    let controlled = Controlled::start(test, By::Best, &["--last", "60s", "--max-saves", "2"], |call| call)?;
    controlled.wait_for_work(50.0)?;
    for _ in 0..2 {
        controlled.ctl("save", |call| call)?;
    }
    expect_eq("the files", controlled.saved().len(), 2)?;
    let number = controlled.number()?;
    let third = test.nyquist(&["ctl", &number, "save"]).run()?;
    expect_eq("the status of the third", third.code(), 1)?;
    expect_contains("what the third says", &third.stderr, "2 profiles have been saved")?;
    controlled.end()?;
    Ok(())
}

/// A plain user's `ctl` does not find root's recording, and cannot enter the folder of its socket.
fn others(test: &Context<'_>) -> Verdict {
    need_root()?;
    let controlled = Controlled::start(test, By::Best, &["--last", "60s"], |call| call)?;
    let number = controlled.number()?;
    let refused = test.nyquist(&["ctl", &number, "save"]).by_plain_user().run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("what it says", &refused.stderr, "no recording")?;
    expect_eq("the saves", controlled.saved().len(), 0)?;
    controlled.end()?;
    // Root reaches a plain user's recording only where it looks for it; its own user does.
    let theirs = Controlled::start(test, By::Best, &["--last", "60s"], Invocation::by_plain_user)?;
    theirs.wait_for_work(50.0)?;
    let status = theirs.ctl("status", Invocation::by_plain_user)?;
    expect_eq("the state", status["state"].as_str(), Some("recording"))?;
    theirs.end()?;
    Ok(())
}

fn refusals(test: &Context<'_>) -> Verdict {
    for (options, part) in [
        (&["--last", "5s", "--trigger", "wait > 1s"][..], "add --off-cpu"),
        (&["--last", "5s", "--trigger", "cpu > 5%", "--no-counters"], "needs the counters"),
        (&["--last", "5s", "--trigger", "disk > 5"], "a trigger is written as"),
        (&["--trigger", "cpu > 5%"], "--last"),
        (&["--last", "5s", "--alloc"], "cannot be used with"),
        (&["--last", "0s"], "not from 0.1"),
    ] {
        let refused = test.nyquist(&["record", "-s"]).args(options).args(&["--", "true"]).run()?;
        expect(refused.code() != 0, format_args!("{options:?} is accepted"))?;
        expect_contains("the refusal", &refused.stderr, part)?;
    }
    let nobody = test.nyquist(&["ctl", "1", "status"]).run()?;
    expect_contains("ctl without a recording", &nobody.stderr, "no recording of or with the number 1")?;
    let unknown = test.nyquist(&["ctl", "dance"]).run()?;
    expect_eq("the status of an unknown action", unknown.code(), 2)?;
    expect_contains("an unknown action", &unknown.stderr, "none of start, stop, save and status")
}
