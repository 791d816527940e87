//! Programs that abuse the recorder's handling of their markers. The only effect is a warning.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip};
use super::invocation::{Finished, PLAIN_USER, Running};
use super::profile::Profile;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_control_file_that_changes_loses_no_sample", changed).in_pairs(SHARES),
    Test::new("attaching_touches_no_path_of_the_target", mounts).in_pairs(SHARES),
    Test::new("what_only_looks_like_a_control_file_is_left", fake).in_pairs(SHARES),
    Test::new("a_killed_recorders_folder_is_removed_later", killed).in_pairs(SHARES),
    Test::new("a_marker_folder_takes_nothing_else_with_it", removal).in_pairs(SHARES),
    Test::new("a_marker_folder_that_is_moved_is_emptied", moved).in_pairs(SHARES),
    Test::new("a_program_marks_no_other_users_process", forged).in_pairs(SHARES),
    Test::new("files_that_never_become_rings_cause_no_delay", unready).in_pairs(SHARES),
];

/// The program's status if it lacks the necessary rights.
const NOT_PERMITTED: i32 = 77;

/// The folders in which marker folders are created.
const PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// Starts the hostile program as a plain user, and waits until the recorder can attach to it. Returns the
/// file with the program's output, too.
fn start<'a>(test: &'a Context<'a>, what: &str, tree: &Path) -> Result<(Running<'a>, PathBuf), Stop> {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("hostile_markers")).args(&[what]).path(&ready).path(tree);
    let target = call.by_plain_user().start()?;
    let is_ready = || fs::metadata(&ready).is_ok_and(|file| file.len() >= 4);
    let Err(error) = target.wait_until("the program can be attached to", is_ready) else {
        return Ok((target, ready));
    };
    let ended = target.wait()?;
    if ended.code() == NOT_PERMITTED {
        return skip(format_args!("a plain user may not do it: {}", ended.stderr.trim_end()));
    }
    Err(error.into())
}

/// Attaches for a second. The program goes on, and its samples are in the profile.
fn attach(test: &Context<'_>, target: &Running<'_>) -> Result<Finished, Stop> {
    let (output, pid) = (test.fresh("attached.json.gz"), target.pid().to_string());
    let recorder = test.nyquist(&["record", "-s", "-d", "1", "-p", &pid, "-o"]).path(&output).start()?;
    let folder = format!("nyquist-markers-{}-", recorder.pid());
    let finished = recorder.wait()?.succeeded()?;
    let samples = Profile::read(&output)?.count();
    expect_measured(samples > 100.0, format_args!("only {samples} samples"))?;
    expect_eq("folders of the recorder", folders(&folder), vec![])?;
    Ok(finished)
}

/// The folders whose names have this prefix, in all possible places.
fn folders(prefix: &str) -> Vec<PathBuf> {
    let entries = PLACES.iter().flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten());
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect()
}

fn end(target: Running<'_>) -> Verdict {
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

fn changed(test: &Context<'_>) -> Verdict {
    for (what, warning) in [
        ("cut", "shortened a file"),
        ("rings", "could not be understood"),
        ("grow", ""),
        ("holes", ""),
        ("seal", ""),
        ("count", ""),
    ] {
        let (target, _) = start(test, what, Path::new(""))?;
        let finished = attach(test, &target)?;
        expect_contains(what, &finished.stderr, warning)?;
        end(target)?;
    }
    Ok(())
}

/// A folder tree that only root may change, with a folder that only root may enter.
fn canary(test: &Context<'_>) -> Result<PathBuf> {
    let tree = test.path("tree");
    for folder in ["private", "files/inner"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    fs::set_permissions(tree.join("private"), fs::Permissions::from_mode(0o700))?;
    for file in ["files/a.nyqmark", "files/inner/b"] {
        fs::write(tree.join(file), "as it was")?;
    }
    Ok(tree)
}

fn expect_whole(tree: &Path) -> Verdict {
    let mut found = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            found.push(path.strip_prefix(tree).context("it is below")?.display().to_string());
            if path.is_dir() {
                folders.push(path);
            } else {
                expect_eq("a file", fs::read_to_string(&path)?.as_str(), "as it was")?;
            }
        }
    }
    found.sort();
    let whole = ["files", "files/a.nyqmark", "files/inner", "files/inner/b", "private"];
    expect_eq("what is there", found, whole.map(str::to_owned).to_vec())
}

fn mounts(test: &Context<'_>) -> Verdict {
    need_root()?;
    let tree = canary(test)?;
    let (target, _) = start(test, "mount", &tree)?;
    attach(test, &target)?;
    let devices = fs::read_dir(format!("/proc/{}/root/dev", target.pid()))?;
    let devices: Vec<_> = devices.flatten().map(|entry| entry.file_name()).collect();
    expect_eq("what is in its /dev", devices, vec!["shm".into()])?;
    end(target)?;
    expect_whole(&tree)
}

fn fake(test: &Context<'_>) -> Verdict {
    let tree = canary(test)?;
    let (target, state) = start(test, "fake", &tree)?;
    attach(test, &target)?;
    expect_eq("the state in the file", fs::read(&state)?, vec![0; 4])?;
    let file = fs::read(format!("/proc/{}/root/memfd:nyquist-markers", target.pid()))?;
    expect(file[8..].iter().all(|byte| *byte == 0), "the file was written to")?;
    end(target)
}

fn killed(test: &Context<'_>) -> Verdict {
    let record = || -> Result<_> {
        let recorder = test.record(&["endless", "1"]).prepare().call.start()?;
        recorder.wait_until_recording()?;
        Ok(recorder)
    };
    let (first, second) = (record()?, record()?);
    let own = |recorder: &Running<'_>| format!("nyquist-markers-{}-", recorder.pid());
    let (of_first, of_second) = (own(&first), own(&second));
    first.signal(libc::SIGKILL)?;
    first.wait()?;
    let left = folders(&of_first);
    expect_eq("folders of a killed recorder", left.len(), 1)?;
    fs::write(left[0].join("1.nyqmark"), "left")?;
    test.record(&["shares", "100"]).run_well()?;
    expect_eq("folders of a killed recorder after the next recording", folders(&of_first), vec![])?;
    expect_eq("folders of one that lives", folders(&of_second).len(), 1)?;
    second.signal(libc::SIGTERM)?;
    second.wait()?;
    expect_eq("folders of one that has ended", folders(&of_second), vec![])
}

/// Records a shell script with a plain user's rights, under root's recorder. Returns the path of its marker
/// folder.
fn record_script(test: &Context<'_>, script: &str) -> Result<PathBuf, Stop> {
    Ok(run_script(test, script)?.stdout_text().trim().into())
}

fn run_script(test: &Context<'_>, script: &str) -> Result<Finished, Stop> {
    need_root()?;
    let script =
        format!("D=$NYQUIST_MARKER_DIR; echo $D; {script}; exec {} 100", test.workload("shares").display());
    let id = PLAIN_USER.to_string();
    let recording = test.record_command(&["sh", "-ec", &script]).with(move |call| {
        call.env("SUDO_UID", id.clone()).env("SUDO_GID", id.clone()).env("SUDO_USER", "nobody")
    });
    Ok(recording.run_well()?.finished)
}

fn removal(test: &Context<'_>) -> Verdict {
    let tree = canary(test)?;
    let files = tree.join("files").display().to_string();
    let script = format!(
        "mkdir $D/inner; ln -s {files} $D/inner/link; ln -s {files} $D/x; ln -s {files}/a.nyqmark $D/y.nyqmark; \
         echo left > $D/z.nyqmark; echo left > $D/inner/own"
    );
    let folder = record_script(test, &script)?;
    let left: Vec<_> = fs::read_dir(&folder)?.flatten().map(|entry| entry.file_name()).collect();
    let inner = folder.join("inner/own").exists();
    fs::remove_dir_all(&folder)?;
    expect_eq("what is left in the folder", left, vec!["inner".into()])?;
    expect(inner, "what the user has put into another folder is gone")?;
    expect_whole(&tree)
}

fn moved(test: &Context<'_>) -> Verdict {
    let tree = canary(test)?;
    let files = tree.join("files").display().to_string();
    let script = format!("echo left > $D/1.nyqmark; mv $D $D-moved; ln -s {files} $D");
    let folder = record_script(test, &script)?;
    let away = PathBuf::from(format!("{}-moved", folder.display()));
    let left = fs::read_dir(&away)?.count();
    let link = fs::read_link(&folder).ok();
    fs::remove_dir_all(&away)?;
    fs::remove_file(&folder)?;
    expect_eq("files of the folder", left, 0)?;
    expect_eq("what has its place", link, Some(files.into()))?;
    expect_whole(&tree)
}

fn forged(test: &Context<'_>) -> Verdict {
    // The header of a ring of 4096 bytes that has no markers yet, of process 1.
    let script = "{ printf 'nyqmark\\001\\000\\020\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000'; \
                  head -c 4268 /dev/zero; } > $D/1.nyqmark; sleep 0.3";
    let finished = run_script(test, script)?;
    expect_contains(
        "stderr",
        &finished.stderr,
        "left out: 1 file with markers, of a process that is not known or another user's",
    )
}

fn unready(test: &Context<'_>) -> Verdict {
    const MAX_TIME: Duration = Duration::from_secs(30);
    // The second is for the recorder: it looks again and again at files that never become rings.
    let script = "seq -f \"$D/%.0f.nyqmark\" 30000 | xargs touch; sleep 1";
    let begun = Instant::now();
    run_script(test, script)?;
    let took = begun.elapsed();
    expect(took < MAX_TIME, format_args!("it took {took:?}"))
}
