//! Recordings whose recorder is killed: `nyquist recover` makes profiles of them, up to the last second.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::by::{BOTH, By};
use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_share, need_root, skip,
};
use super::group_folders::MemoryGroup;
use super::invocation::{Invocation, PLAIN_USER, Running};
use super::profile::Profile;
use super::running_targets::is_alive;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_killed_recorder_loses_less_than_a_second", killed).in_pairs(SHARES),
    Test::new("a_plain_users_killed_recording_is_recovered", killed_of_plain_user).in_pairs(SHARES),
    Test::new("under_sudo_the_spool_is_the_users", under_sudo).in_pairs(SHARES),
    Test::new("a_recorder_out_of_memory_is_recovered", out_of_memory)
        .exclusive("takes the memory from a process"),
    Test::new("a_saved_recording_leaves_no_spool", saved),
    Test::new("a_full_disk_stops_only_the_spool", full_disk),
    Test::new("a_full_spool_stops_only_the_spool", full_spool),
    Test::new("what_can_be_recovered_is_said_and_removed", said_and_removed),
    Test::new("damaged_spools_are_said_and_kept", damaged),
    Test::new("links_in_spools_lead_nowhere", links),
    Test::new("no_spool_is_behind_another_users_link", others_link),
    Test::new("waits_that_last_are_recovered", waits),
];

/// A recording of short runs of a program, one after the other: at any time it has the program's shares.
struct Recorded<'a> {
    test: &'a Context<'a>,
    recorder: Running<'a>,
}

/// The folder of spools below a home folder.
fn spools(home: &Path) -> PathBuf {
    home.join(".local/state/nyquist/spool")
}

/// Whether a folder has a segment of some size.
fn has_segment(folder: &Path, size: u64) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let has_size = |file: fs::DirEntry| file.metadata().is_ok_and(|file| file.len() >= size);
    files.filter(|file| file.path().extension().is_some_and(|end| end == "spool")).any(has_size)
}

/// The spools in a folder.
fn folders(spools: &Path) -> Vec<PathBuf> {
    fs::read_dir(spools).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Records turns of the program, so that each part of the recording has its shares.
fn start<'a>(
    test: &'a Context<'a>,
    home: &Path,
    options: &[&str],
    adapt: impl Fn(Invocation<'a>) -> Invocation<'a>,
) -> Result<Recorded<'a>, Stop> {
    let script = format!("while :; do {} 200; done", test.workload("shares").display());
    let output = test.fresh("lost.json.gz");
    let call = test.nyquist(&["record", "-s"]).args(options).args(&["-o"]).path(&output);
    let call = call.args(&["--", "sh", "-c", &script]).env("HOME", home.display().to_string());
    let recorder = adapt(call).start()?;
    let spools = spools(home);
    recorder.wait_until("a spool with some seconds", || {
        folders(&spools).iter().any(|folder| has_segment(folder, 12_000))
    })?;
    Ok(Recorded { test, recorder })
}

impl Recorded<'_> {
    /// Kills the recorder. Returns when, in µs since 1970.
    fn kill(self) -> Result<f64, Stop> {
        let pid = self.recorder.pid();
        self.recorder.signal(libc::SIGKILL)?;
        let killed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64;
        self.recorder.wait()?;
        expect(!is_alive(pid), "the recorder lives")?;
        self.test.kill_all();
        Ok(killed)
    }
}

/// What can be recovered, as JSON.
fn list<'a>(
    test: &'a Context<'a>,
    home: &Path,
    adapt: impl Fn(Invocation<'a>) -> Invocation<'a>,
) -> Result<Value, Stop> {
    let call = test.nyquist(&["recover", "--json"]).env("HOME", home.display().to_string());
    Ok(serde_json::from_str(&adapt(call).run()?.succeeded()?.stdout_text())?)
}

/// Recovers the only recording.
fn recover<'a>(
    test: &'a Context<'a>,
    home: &Path,
    adapt: impl Fn(Invocation<'a>) -> Invocation<'a>,
) -> Result<Profile, Stop> {
    let output =
        home.join(format!("{}.json.gz", test.fresh("recovered").file_name().unwrap_or_default().display()));
    let call = test.nyquist(&["recover", "-o"]).path(&output).env("HOME", home.display().to_string());
    adapt(call).run()?.succeeded()?;
    Ok(Profile::read(&output)?)
}

/// Checks the shares of the program, of the time in its functions.
fn expect_shares(profile: &Profile) -> Verdict {
    let share = |name| profile.total_share(name);
    let all = share("alpha") + share("beta") + share("gamma_");
    expect_measured(all > 0.5, format_args!("the functions have {all:.2}: {:?}", profile.functions()))?;
    for (name, expected) in [("alpha", 0.5), ("beta", 0.3), ("gamma_", 0.2)] {
        expect_share(name, share(name) / all, expected, profile.count())?;
    }
    Ok(())
}

fn killed(test: &Context<'_>) -> Verdict {
    for (number, by) in BOTH.into_iter().enumerate() {
        let home = test.path(&format!("home-{number}"));
        fs::create_dir(&home)?;
        killed_by(test, &home, by, |call| call)?;
    }
    Ok(())
}

/// Kills a recorder, and checks what is recovered.
fn killed_by<'a>(
    test: &'a Context<'a>,
    home: &Path,
    by: By,
    adapt: impl Fn(Invocation<'a>) -> Invocation<'a>,
) -> Verdict {
    let recorded = start(test, home, &[], |call| adapt(by.adapt(test, call)))?;
    let killed = recorded.kill()?;
    let list = list(test, home, &adapt)?;
    let row = &list["recordings"][0];
    let end =
        row["start_us"].as_f64().unwrap_or_default() + row["duration_ns"].as_f64().unwrap_or_default() / 1e3;
    let lost = (killed - end) / 1e6;
    expect_measured(lost < 1.0, format_args!("{lost:.2} s are lost ({by:?}): {list}"))?;
    let profile = recover(test, home, &adapt)?;
    let samples = row["samples"].as_f64().unwrap_or_default();
    expect(profile.count() >= samples * 0.9, format_args!("{} of {samples} samples", profile.count()))?;
    expect_shares(&profile)
}

fn killed_of_plain_user(test: &Context<'_>) -> Verdict {
    let home = users_home(test)?;
    killed_by(test, &home, By::Best, Invocation::by_plain_user)
}

/// A home folder of the plain user.
fn users_home(test: &Context<'_>) -> Result<PathBuf, Stop> {
    need_root()?;
    let home = test.path("home");
    fs::create_dir(&home)?;
    chown(&home, Some(PLAIN_USER), Some(PLAIN_USER))?;
    Ok(home)
}

fn under_sudo(test: &Context<'_>) -> Verdict {
    let home = users_home(test)?;
    start(test, &home, &[], |call| {
        let id = PLAIN_USER.to_string();
        call.env("SUDO_UID", id.clone()).env("SUDO_GID", id).env("SUDO_USER", "nobody")
    })?
    .kill()?;
    for folder in folders(&spools(&home)) {
        for path in folders(&folder).into_iter().chain([folder]) {
            let file = fs::symlink_metadata(&path)?;
            let rights = file.mode() & 0o077;
            expect_eq(&format!("the owner of {}", path.display()), (file.uid(), rights), (PLAIN_USER, 0))?;
        }
    }
    // The user recovers it without sudo.
    expect_shares(&recover(test, &home, Invocation::by_plain_user)?)
}

fn out_of_memory(test: &Context<'_>) -> Verdict {
    /// How long the kernel may take to end a process that needs more memory.
    const PATIENCE: Duration = Duration::from_mins(1);
    need_root()?;
    let Some(group) = MemoryGroup::create("oom") else {
        return skip("there are no memory control groups here");
    };
    let home = test.path("home");
    fs::create_dir(&home)?;
    let join = format!("echo $$ > {}; exec \"$0\" \"$@\"", group.processes().display());
    let recorded = start(test, &home, &["-r", "5000"], |call| call.under(&["sh", "-c", &join]))?;
    let (pid, began) = (recorded.recorder.pid(), Instant::now());
    while is_alive(pid) {
        expect(began.elapsed() < PATIENCE, "the recorder needs no more memory")?;
        group.close();
        // The limit is lowered again until the kernel has ended the recorder.
        thread::sleep(Duration::from_millis(20));
    }
    recorded.recorder.wait()?;
    test.kill_all();
    expect_shares(&recover(test, &home, |call| call)?)
}

fn saved(test: &Context<'_>) -> Verdict {
    let home = test.path("home");
    fs::create_dir(&home)?;
    let recorded = start(test, &home, &[], |call| call)?;
    let running = list(test, &home, |call| call)?;
    expect_eq("what is offered", running["recordings"].as_array().map(Vec::len), Some(0))?;
    expect_eq("what runs", running["running"].as_u64(), Some(1))?;
    let discarded = test.nyquist(&["recover", "--discard"]).env("HOME", home.display().to_string()).run()?;
    expect_eq("the status of discarding", discarded.code(), 0)?;
    expect_eq("the spools of a running recorder", folders(&spools(&home)).len(), 1)?;
    recorded.recorder.signal(libc::SIGTERM)?;
    recorded.recorder.wait()?;
    expect_eq("what is left", folders(&spools(&home)), Vec::<PathBuf>::new())
}

/// A tiny file system, which is unmounted at the end.
struct TinyDisk(PathBuf);

impl Drop for TinyDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

fn full_disk(test: &Context<'_>) -> Verdict {
    need_root()?;
    let disk = test.path("tiny");
    fs::create_dir(&disk)?;
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=48k,mode=700", "nyquist-test"]).arg(&disk);
    if !mount.output()?.status.success() {
        return skip("cannot mount a tmpfs here");
    }
    let disk = TinyDisk(disk);
    let spool = format!("--spool={}", disk.0.display());
    let (finished, profile) = record_much(test, &spool)?;
    let warnings = finished.matches("warning: cannot write to").count();
    expect_eq(&format!("the warnings in {finished}"), warnings, 1)?;
    expect_contains("stderr", &finished.to_lowercase(), "no space left")?;
    expect_measured(profile.total_share("middle") > 0.9, "the profile has no names")?;
    expect_eq("what is left", folders(&disk.0), Vec::<PathBuf>::new())
}

/// Records so much that the spool becomes too large. Returns the messages and the profile.
fn record_much(test: &Context<'_>, option: &str) -> Result<(String, Profile), Stop> {
    let output = test.path("x.json.gz");
    let call = test.nyquist(&["record", "-s", "-r", "5000", option, "-o"]).path(&output);
    let recorder = call.args(&["--"]).path(&test.workload("shares")).args(&["30000"]).start()?;
    recorder.wait_until("a warning", || recorder.stderr_so_far().contains("is lost if nyquist is killed"))?;
    recorder.signal(libc::SIGTERM)?;
    let finished = recorder.wait()?;
    Ok((finished.stderr, Profile::read(&output)?))
}

fn full_spool(test: &Context<'_>) -> Verdict {
    let (stderr, profile) = record_much(test, "--max-size=20000")?;
    expect_eq(&format!("the warnings in {stderr}"), stderr.matches("all that --max-size allows").count(), 1)?;
    expect_measured(profile.total_share("middle") > 0.9, "the profile has no names")?;
    expect_eq("what is left", folders(&spools(&test.path(""))), Vec::<PathBuf>::new())
}

fn said_and_removed(test: &Context<'_>) -> Verdict {
    let home = test.path("home");
    fs::create_dir(&home)?;
    let call = |args: &[&str]| test.nyquist(args).env("HOME", home.display().to_string());
    let nothing = call(&["recover"]).run()?.succeeded()?;
    expect_contains("stdout", &nothing.stdout_text(), "Nothing to recover")?;
    expect_eq("the status without one", call(&["recover", "-o", "x.json"]).run()?.code(), 1)?;
    start(test, &home, &["--profile-name", "the-name"], |call| call)?.kill()?;
    let shown = call(&["recover"]).run()?.succeeded()?.stdout_text();
    expect_contains("the list", &shown, "the-name")?;
    let next = call(&["record", "-s", "-o", "y.json", "--", "true"]).run()?.succeeded()?;
    let printed = next.stderr.matches("1 recording was not saved: `nyquist recover`").count();
    expect_eq(&format!("the lines in {}", next.stderr), printed, 1)?;
    let refused = call(&["recover", "no-such-name", "-o", "z.json"]).run()?;
    expect_eq("the status of an unknown name", refused.code(), 1)?;
    call(&["recover", "--discard"]).run()?.succeeded()?;
    expect_eq("what is left", folders(&spools(&home)), Vec::<PathBuf>::new())?;
    let quiet = call(&["record", "-s", "-o", "y.json", "--", "true"]).run()?.succeeded()?;
    expect(!quiet.stderr.contains("was not saved"), &quiet.stderr)
}

/// The segment of the only spool.
fn segment(home: &Path) -> Result<PathBuf, Stop> {
    let spools = folders(&spools(home));
    let files: Vec<_> = spools.iter().flat_map(|folder| folders(folder)).collect();
    let segment = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "spool"));
    segment.ok_or_else(|| Stop::Failed("there is no segment".to_owned()))
}

fn damaged(test: &Context<'_>) -> Verdict {
    let home = test.path("home");
    fs::create_dir(&home)?;
    let recorded = start(test, &home, &[], |call| call)?;
    // Half of it then has the first batch, and not the last.
    let path = segment(&home)?;
    let length = || fs::metadata(&path).map_or(0, |file| file.len());
    let first = length();
    recorded.recorder.wait_until("further batches", || length() > 3 * first)?;
    recorded.kill()?;
    let (path, whole) = (segment(&home)?, recover(test, &home, |call| call)?.count());
    let bytes = fs::read(&path)?;
    // Cut off in the middle.
    fs::write(&path, &bytes[..bytes.len() / 2])?;
    let half = recover(test, &home, |call| call)?.count();
    expect(half > 0.0 && half < whole, format_args!("{half} of {whole} samples"))?;
    let refuses = |bytes: &[u8], why: &str| {
        fs::write(&path, bytes)?;
        let call = test.nyquist(&["recover", "-o", "x.json"]).env("HOME", home.display().to_string());
        let refused = call.run()?;
        expect_eq(&format!("the status: {}", refused.stderr), refused.code(), 1)?;
        expect_contains("stderr", &refused.stderr, why)?;
        let listed = test.nyquist(&["recover"]).env("HOME", home.display().to_string()).run()?.succeeded()?;
        expect_contains("the list", &listed.stdout_text(), why)?;
        expect_eq("the bytes of the spool", fs::read(&path)?, bytes.to_vec())
    };
    let mut newer = bytes.clone();
    newer[12] = 9;
    refuses(&newer, "a newer version of nyquist")?;
    refuses(&vec![0; bytes.len()], "ends before its first second")?;
    refuses(b"#!/bin/sh\n", "no spool of nyquist")?;
    refuses(&[], "ends before its first second")
}

fn links(test: &Context<'_>) -> Verdict {
    let home = test.path("home");
    fs::create_dir(&home)?;
    start(test, &home, &[], |call| call)?.kill()?;
    let (path, other) = (segment(&home)?, test.path("other"));
    fs::rename(&path, &other)?;
    symlink(&other, &path)?;
    let bytes = fs::read(&other)?;
    symlink(test.path(""), spools(&home).join("linked"))?;
    let call = |args: &[&str]| test.nyquist(args).env("HOME", home.display().to_string());
    let listed = call(&["recover"]).run()?.succeeded()?.stdout_text();
    expect_contains("the list", &listed, "linked cannot be recovered: it is a file or a link")?;
    expect_eq("the status", call(&["recover", "-o", "x.json"]).run()?.code(), 1)?;
    call(&["recover", "--discard"]).run()?.succeeded()?;
    expect_eq("the file behind the link", fs::read(&other)?, bytes)?;
    expect(test.path("home").exists() && spools(&home).join("linked").is_symlink(), "a link was followed")?;
    // A folder that others may write to is not used.
    let shared = test.path("shared");
    fs::create_dir(&shared)?;
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777))?;
    let refused =
        call(&["record", "-s", "--spool"]).path(&shared).args(&["-o", "x.json", "--", "true"]).run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("stderr", &refused.stderr, "other users may write to it")
}

fn others_link(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (own, link) = (test.path("own"), test.path("link"));
    fs::create_dir(&own)?;
    symlink(&own, &link)?;
    lchown(&link, Some(PLAIN_USER), None)?;
    for place in [link.clone(), link.join("new")] {
        let call = test.nyquist(&["record", "-s", "--spool"]).path(&place);
        let refused = call.args(&["-o", "x.json", "--", "true"]).run()?;
        expect_eq("the status", refused.code(), 1)?;
        expect_contains("stderr", &refused.stderr, "a link of another user's is on its path")?;
    }
    expect(fs::read_dir(&own)?.next().is_none(), "something was made behind the link")
}

/// A thread that waits all the time has its wait in the recovered profile.
fn waits(test: &Context<'_>) -> Verdict {
    let home = test.path("home");
    fs::create_dir(&home)?;
    let script = format!("sleep 1000 & while :; do {} 200; done", test.workload("shares").display());
    let call = test.nyquist(&["record", "-s", "--off-cpu", "-o", "x.json.gz", "--", "sh", "-c", &script]);
    let recorder = call.env("HOME", home.display().to_string()).start()?;
    let spools = spools(&home);
    recorder.wait_until("a spool", || folders(&spools).iter().any(|folder| has_segment(folder, 20_000)))?;
    Recorded { test, recorder }.kill()?;
    recover(test, &home, |call| call)?;
    let recovered = fs::read_dir(&home)?.flatten().map(|entry| entry.path());
    let profile = recovered.into_iter().find(|path| path.extension().is_some_and(|end| end == "gz"));
    let Some(profile) = profile else { return Err(Stop::Failed("no profile was made".to_owned())) };
    let report = test.nyquist(&["report", "--off-cpu", "--json", "--limit", "0"]).path(&profile).run()?;
    let report = report.succeeded()?.stdout_text();
    expect_contains("the report", &report, "[waiting: sleep]")
}
