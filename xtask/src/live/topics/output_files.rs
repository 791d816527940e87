//! Where the profile is saved: the file is opened first, it is complete or absent, only its owner may read
//! it, and nothing is overwritten.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip};
use super::invocation::{Finished, Invocation};
use super::profile::Profile;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("an_unwritable_path_fails_before_the_command", unwritable).quick(),
    Test::new("a_profile_is_for_its_owner_alone", mode).quick(),
    Test::new("an_earlier_recording_is_kept_as_old", old_kept).quick(),
    Test::new("a_symbolic_link_is_followed_and_stays", symbolic_link),
    Test::new("a_dangling_link_leads_to_the_new_file", dangling_link),
    Test::new("a_fifo_is_written_to_and_not_replaced", fifo),
    Test::new("dev_null_is_written_to_and_not_replaced", dev_null),
    Test::new("a_device_that_is_full_is_an_error", full_device),
    Test::new("a_profile_is_not_written_to_a_terminal", terminal_output),
    Test::new("standard_output_gets_only_the_profile", standard_output).quick(),
    Test::new("the_usual_name_is_profile_json_gz", usual_name),
    Test::new("nothing_partial_appears_while_recording", no_partial),
    Test::new("a_full_disk_is_said_and_leaves_nothing", full_disk).in_pairs(SHARES),
    Test::new("a_lost_perf_data_is_a_failure", full_disk_for_perf_data).in_pairs(SHARES),
];

/// A call that records to a path. The recorded command creates the file `marker`.
fn record_to<'a>(test: &'a Context<'a>, output: &Path, marker: &Path) -> Invocation<'a> {
    let call = test.nyquist(&["record", "-s", "-o"]).path(output);
    call.args(&["--", "sh", "-c", "touch \"$0\"; exec \"$@\""])
        .path(marker)
        .path(&test.workload("shares"))
        .args(&["50"])
}

fn unwritable(test: &Context<'_>) -> Verdict {
    let folder = test.path("a-folder");
    fs::create_dir_all(&folder)?;
    let in_missing = test.path("no-such-folder").join("x.json.gz");
    for output in [&in_missing, Path::new("/proc/x.json.gz"), &folder] {
        let marker = test.fresh("the-command-ran");
        let finished = record_to(test, output, &marker).run()?;
        expect(!finished.status.success(), format_args!("{} was accepted", output.display()))?;
        expect(
            !marker.exists(),
            format_args!("the command ran although {} cannot be written", output.display()),
        )?;
        expect_contains("stderr", &finished.stderr, &output.display().to_string())?;
    }
    // Root may write anywhere, but a plain user may not.
    let closed = test.path("closed");
    fs::create_dir_all(&closed)?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555))?;
    let marker = test.fresh("the-command-ran");
    let finished = record_to(test, &closed.join("x.json.gz"), &marker).by_plain_user().run()?;
    expect(!finished.status.success() && !marker.exists(), "a closed folder did not stop the recording")?;
    expect_contains("stderr", &finished.stderr.to_lowercase(), "permission denied")
}

fn record_well(test: &Context<'_>, output: &Path) -> Result<(), anyhow::Error> {
    let marker = test.fresh("marker");
    record_to(test, output, &marker).run()?.succeeded()?;
    anyhow::ensure!(marker.exists(), "the command did not run");
    Ok(())
}

/// Fails unless the file is a profile of the workload.
fn expect_profile(path: &Path) -> Verdict {
    let profile = Profile::read(path)?;
    expect_measured(
        profile.total() > 10.0,
        format_args!("{} has {} samples", path.display(), profile.total()),
    )
}

fn mode(test: &Context<'_>) -> Verdict {
    let output = test.path("mine.json.gz");
    // Even with a permissive umask, the file must not be readable for others.
    let call = record_to(test, &output, &test.path("marker"));
    call.under(&["sh", "-c", "umask 000; exec \"$@\"", "sh"]).run()?.succeeded()?;
    expect_profile(&output)?;
    expect_eq("the mode", fs::metadata(&output)?.mode() & 0o7777, 0o600)
}

fn old_kept(test: &Context<'_>) -> Verdict {
    let output = test.path("again.json.gz");
    fs::write(&output, "the earlier one")?;
    record_well(test, &output)?;
    expect_profile(&output)?;
    let old = ["again.json.gz.old", "again.old.json.gz", "again.json.old.gz"].map(|name| test.path(name));
    let retained = old.iter().find(|path| path.exists());
    let text = retained.map(fs::read_to_string).transpose()?;
    expect_eq("the earlier recording", text.as_deref(), Some("the earlier one"))?;
    expect_contains("its name", &retained.map(|path| path.display().to_string()).unwrap_or_default(), ".old")
}

fn symbolic_link(test: &Context<'_>) -> Verdict {
    let (link, target) = (test.path("link.json.gz"), test.path("target.json.gz"));
    fs::write(&target, "before")?;
    symlink("target.json.gz", &link)?;
    record_well(test, &link)?;
    expect(link.symlink_metadata()?.is_symlink(), "the link was replaced")?;
    expect_profile(&target)
}

fn dangling_link(test: &Context<'_>) -> Verdict {
    let (link, target) = (test.path("link.json.gz"), test.path("new-target.json.gz"));
    symlink(&target, &link)?;
    record_well(test, &link)?;
    expect(link.symlink_metadata()?.is_symlink(), "the link was replaced")?;
    expect_profile(&target)
}

fn fifo(test: &Context<'_>) -> Verdict {
    let fifo = test.path("fifo");
    expect(Command::new("mkfifo").arg(&fifo).status()?.success(), "mkfifo failed")?;
    let copy = test.path("copy.json.gz");
    fs::write(&copy, "")?;
    let reader = test.program("cat").path(&fifo).stdout_to(&copy).start()?;
    record_well(test, &fifo)?;
    reader.wait()?.succeeded()?;
    expect(fifo.symlink_metadata()?.file_type().is_fifo(), "the FIFO was replaced")?;
    expect_profile(&copy)
}

fn dev_null(test: &Context<'_>) -> Verdict {
    // The test makes another device, so that a failure does not break the machine's /dev/null.
    let null = test.path("null");
    if !Command::new("mknod").arg(&null).args(["c", "1", "3"]).status()?.success() {
        return skip("cannot make a device here (needs root)");
    }
    record_well(test, &null)?;
    expect(null.symlink_metadata()?.file_type().is_char_device(), "the device was replaced")
}

fn full_device(test: &Context<'_>) -> Verdict {
    let full = test.path("device");
    if !Command::new("mknod").arg(&full).args(["c", "1", "7"]).status()?.success() {
        return skip("cannot make a device here (needs root)");
    }
    let finished = record_to(test, &full, &test.path("marker")).run()?;
    expect_reported_and_kept(test, &finished, &full)
}

fn terminal_output(test: &Context<'_>) -> Verdict {
    let marker = test.path("marker");
    let finished = record_to(test, Path::new("-"), &marker).on_terminal().run()?;
    expect(!finished.status.success() && !marker.exists(), "a profile was written to a terminal")?;
    expect_contains("what was shown", &finished.stderr, "terminal")
}

fn standard_output(test: &Context<'_>) -> Verdict {
    let output = test.path("stdout.json.gz");
    fs::write(&output, "")?;
    let call = test.nyquist(&["record", "-s", "-o", "-", "--"]).path(&test.workload("shares")).args(&["50"]);
    call.stdout_to(&output).run()?.succeeded()?;
    expect_profile(&output)?;
    let mut rest = Vec::new();
    let file = fs::File::open(&output)?;
    let mut gzip = flate2::bufread::GzDecoder::new(std::io::BufReader::new(file));
    std::io::copy(&mut gzip, &mut std::io::sink())?;
    gzip.into_inner().read_to_end(&mut rest)?;
    expect(rest.is_empty(), format_args!("{} bytes follow the profile", rest.len()))
}

fn usual_name(test: &Context<'_>) -> Verdict {
    let call = test.nyquist(&["record", "-s", "--"]).path(&test.workload("shares")).args(&["50"]);
    let finished = call.run()?.succeeded()?;
    expect_profile(&test.path("profile.json.gz"))?;
    expect_contains("stderr", &finished.stderr, "profile.json.gz")
}

fn no_partial(test: &Context<'_>) -> Verdict {
    let (output, ready) = (test.path("late.json.gz"), test.path("ready"));
    fs::write(&output, "before")?;
    let call =
        test.nyquist(&["record", "-s", "-o"]).path(&output).args(&["--"]).path(&test.workload("shares"));
    let running = call.args(&["500"]).env("WORKLOAD_READY", ready.display().to_string()).start()?;
    running.wait_for_file(&ready)?;
    expect_eq("the file while recording", fs::read_to_string(&output)?, "before".to_owned())?;
    running.wait()?.succeeded()?;
    expect_profile(&output)?;
    let names = others(test.path("").as_path(), "late.json.gz")?;
    expect_eq("files beside it", names, vec!["late.json.gz.old".to_owned()])
}

/// The other files whose names contain `part`.
fn others(folder: &Path, part: &str) -> Result<Vec<String>, anyhow::Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.contains(part) && name != part && !name.ends_with("stdout") && !name.ends_with("stderr") {
            names.push(name);
        }
    }
    Ok(names)
}

/// A tiny file system, which is unmounted at the end.
pub(super) struct TinyDisk(pub(super) PathBuf);

impl TinyDisk {
    pub(super) fn mount(folder: PathBuf) -> Result<Option<Self>, anyhow::Error> {
        fs::create_dir_all(&folder)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k,mode=777", "nyquist-test"]).arg(&folder);
        Ok(mount.output()?.status.success().then_some(Self(folder)))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

fn full_disk(test: &Context<'_>) -> Verdict {
    need_root()?;
    let Some(disk) = TinyDisk::mount(test.path("tiny"))? else { return skip("cannot mount a tmpfs here") };
    fs::write(disk.0.join("filler"), vec![0; 62 * 1024])
        .or_else(|_| fs::write(disk.0.join("filler"), [0; 4096]))?;
    let output = disk.0.join("x.json.gz");
    let finished = record_to(test, &output, &test.path("marker")).run()?;
    let left = others(&disk.0, "json.gz")?;
    expect(left.is_empty(), format_args!("left behind: {left:?}"))?;
    expect(!output.exists() || expect_profile(&output).is_ok(), "what is there under the name is not whole")?;
    expect_reported_and_kept(test, &finished, &output)
}

/// The profile is on another file system, and is saved.
fn full_disk_for_perf_data(test: &Context<'_>) -> Verdict {
    need_root()?;
    let Some(disk) = TinyDisk::mount(test.path("tiny"))? else { return skip("cannot mount a tmpfs here") };
    let (retained, output) = (disk.0.join("perf.data"), test.path("x.json.gz"));
    let call = test.nyquist(&["record", "-s", "--perf-data"]).path(&retained).args(&["-o"]).path(&output);
    let finished = call.args(&["--"]).path(&test.workload("shares")).args(&["300"]).run()?;
    if finished.stderr.contains("by ptrace") {
        return skip("perf_event_open is refused here");
    }
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("stderr", &finished.stderr, "no space left")?;
    expect_profile(&output)?;
    expect(!retained.exists(), "a part of the file is there")
}

/// Checks that the message says that there is no space. Either the recording is elsewhere and the message
/// says where, or the status says that it failed.
fn expect_reported_and_kept(test: &Context<'_>, finished: &Finished, output: &Path) -> Verdict {
    // The test's own name must not count as a message.
    let text = finished.stderr.replace(&test.path("").display().to_string(), "").to_lowercase();
    expect(text.contains("no space") || text.contains("full"), format_args!("stderr: {text:?}"))?;
    let args =
        finished.stderr.split_whitespace().map(|word| word.trim_matches(['`', '\'', '"', ',', ':', '.']));
    let name = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut elsewhere =
        args.filter(|word| word.ends_with(&name)).map(PathBuf::from).filter(|path| path != output);
    match elsewhere.find(|path| path.is_file()) {
        Some(path) => {
            let held = expect_profile(&path);
            drop(fs::remove_file(&path));
            // The folder was made for the file. It is only removed if it is empty.
            drop(path.parent().map(fs::remove_dir));
            held
        }
        None => expect(!finished.status.success(), "the profile is gone, and the status says nothing of it"),
    }
}
