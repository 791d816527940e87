//! Output files in folders where other users may write. Those users cannot decide which file is written,
//! replaced or removed.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::invocation::{Invocation, PLAIN_USER};
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_strangers_link_is_not_followed", strangers_link),
    Test::new("ones_own_link_is_followed", own_link),
    Test::new("a_strangers_fifo_gets_nothing", strangers_fifo),
    Test::new("a_recording_that_fails_leaves_no_perf_data", failed_perf_data),
    Test::new("an_earlier_perf_data_is_kept_as_old", old_perf_data),
    Test::new("two_files_of_one_name_are_refused", one_name),
    Test::new("a_device_is_never_given_away", device),
    Test::new("an_interrupt_ends_the_wait_for_a_reader", waits_for_reader),
    Test::new("files_of_dead_recorders_are_removed", stale_files),
    Test::new("man_pages_are_not_written_through_links", man_pages),
    Test::new("what_has_no_room_lies_in_a_private_folder", private_folder),
];

/// A folder in which all users may write, like `/tmp`, and a file of root that no other user can see.
struct Shared {
    folder: PathBuf,
    secret: PathBuf,
}

impl Shared {
    fn make(test: &Context<'_>) -> Result<Self, anyhow::Error> {
        let (folder, private) = (test.fresh("shared"), test.fresh("private"));
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))?;
        fs::create_dir(&private)?;
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700))?;
        let secret = private.join("secret");
        fs::write(&secret, "secret")?;
        Ok(Self { folder, secret })
    }

    /// A link that belongs to the plain user.
    fn link(&self, name: &str, target: &Path) -> Result<PathBuf, anyhow::Error> {
        let link = self.folder.join(name);
        symlink(target, &link)?;
        lchown(&link, Some(PLAIN_USER), Some(PLAIN_USER))?;
        Ok(link)
    }

    /// Checks that the secret is unchanged, and that no file was made beside it.
    fn expect_untouched(&self) -> Verdict {
        expect_eq("the secret", fs::read_to_string(&self.secret)?, "secret".to_owned())?;
        let folder = self.secret.parent().unwrap_or(Path::new("/"));
        expect_eq("files beside the secret", fs::read_dir(folder)?.count(), 1)
    }
}

/// A call that records. The recorded command creates the file `marker`.
fn recording<'a>(test: &'a Context<'a>, options: &[&str], marker: &Path) -> Invocation<'a> {
    let call = test.nyquist(&["record", "-s"]).args(options);
    call.args(&["--", "sh", "-c", "touch \"$0\"; exec \"$@\""])
        .path(marker)
        .path(&test.workload("shares"))
        .args(&["50"])
}

/// Tests four links: to a file, to a missing file, to a folder in the path, and a link to such a link.
fn strangers_link(test: &Context<'_>) -> Verdict {
    need_root()?;
    let shared = Shared::make(test)?;
    let profile = test.record(&["shares", "50"]).run_well()?.path.display().to_string();
    let private = shared.secret.parent().unwrap_or(Path::new("/"));
    let to_file = shared.link("to-file", &shared.secret)?;
    let to_nothing = shared.link("to-nothing", &private.join("new"))?;
    let to_folder = shared.link("to-folder", private)?.join("new");
    let own = shared.folder.join("own");
    symlink("to-file", &own)?;
    for path in [to_file, to_nothing, to_folder, own] {
        let path = path.display().to_string();
        let marker = test.fresh("marker");
        let elsewhere = test.fresh("p.json.gz").display().to_string();
        let calls = [
            recording(test, &["-o", &path], &marker),
            recording(test, &["-o", &elsewhere, "--flamegraph", &path], &marker),
            recording(test, &["-o", &elsewhere, "--perf-data", &path], &marker),
            test.nyquist(&["import", "-s", &profile, "-o", &path]),
            test.nyquist(&["export", "--format", "folded", &profile, "-o", &path]),
            test.nyquist(&["export", "--format", "perf.data", &profile, "-o", &path]),
            test.nyquist(&["flamegraph", &profile, "-o", &path]),
        ];
        for call in calls {
            let line = call.line();
            let finished = call.run()?;
            expect_eq(&line, finished.code(), 1)?;
            expect_contains(&line, &finished.stderr, &format!("is a link of user {PLAIN_USER}"))?;
            expect_contains(&line, &finished.stderr, "hint: a link is followed if you own it")?;
            expect(!marker.exists(), format_args!("{line}: the command ran"))?;
            expect(!Path::new(&elsewhere).exists(), format_args!("{line}: a profile was left behind"))?;
            shared.expect_untouched()?;
        }
    }
    expect_eq("files in the folder", fs::read_dir(&shared.folder)?.count(), 4)
}

/// Tests links in place of a page, of its folder, and of a folder above that.
fn man_pages(test: &Context<'_>) -> Verdict {
    need_root()?;
    let shared = Shared::make(test)?;
    let private = shared.secret.parent().unwrap_or(Path::new("/"));
    let folder = shared.folder.join("man1");
    fs::create_dir(&folder)?;
    let page = shared.link("man1/nyquist.1", &shared.secret)?;
    let to_folder = shared.link("to-folder", private)?;
    for place in [&folder, &to_folder, &to_folder.join("new"), &to_folder.join("new/man1")] {
        let finished = test.nyquist(&["man"]).path(place).run()?;
        expect_eq(&finished.line, finished.code(), 1)?;
        expect_contains(&finished.line, &finished.stderr, &format!("is a link of user {PLAIN_USER}"))?;
        shared.expect_untouched()?;
    }
    fs::remove_file(page)?;
    let inner = folder.join("share/man1");
    for _ in 0..2 {
        test.nyquist(&["man"]).path(&inner).run()?.succeeded()?;
    }
    let names: Vec<_> = fs::read_dir(&inner)?.flatten().map(|entry| entry.file_name()).collect();
    expect(names.iter().all(|name| name.to_string_lossy().ends_with(".1")), format_args!("{names:?}"))?;
    let mode = |path: &Path| fs::metadata(path).map(|file| file.permissions().mode() & 0o777);
    expect_eq("the rights to a page", mode(&inner.join("nyquist.1"))?, 0o644)?;
    expect_eq("the rights to the folder", mode(&inner)?, 0o755)
}

/// Tests the plain user, and root under `sudo` by the plain user.
fn own_link(test: &Context<'_>) -> Verdict {
    need_root()?;
    let shared = Shared::make(test)?;
    let target = shared.folder.join("target.json.gz");
    let link = shared.link("link.json.gz", &target)?.display().to_string();
    let id = PLAIN_USER.to_string();
    let as_user = recording(test, &["-o", &link], &test.fresh("marker")).by_plain_user();
    let by_sudo = recording(test, &["-o", &link], &test.fresh("marker"));
    let by_sudo = by_sudo.env("SUDO_UID", id.clone()).env("SUDO_GID", id).env("SUDO_USER", "nobody");
    for call in [as_user, by_sudo] {
        call.run()?.succeeded()?;
        expect(Path::new(&link).symlink_metadata()?.is_symlink(), "the link was replaced")?;
        expect_eq("the owner", fs::metadata(&target)?.uid(), PLAIN_USER)?;
        Profile::read(&target)?;
    }
    // Root does not follow a link in another user's folder, either.
    let folder = test.path("of-the-plain-user");
    fs::create_dir(&folder)?;
    lchown(&folder, Some(PLAIN_USER), None)?;
    let link = folder.join("link.json.gz");
    symlink(&shared.secret, &link)?;
    lchown(&link, Some(PLAIN_USER), None)?;
    let finished = recording(test, &["-o", &link.display().to_string()], &test.fresh("marker")).run()?;
    expect_contains("stderr", &finished.stderr, "is a link of user")?;
    shared.expect_untouched()
}

fn strangers_fifo(test: &Context<'_>) -> Verdict {
    need_root()?;
    let shared = Shared::make(test)?;
    let fifo = shared.folder.join("fifo");
    expect(Command::new("mkfifo").arg(&fifo).status()?.success(), "mkfifo failed")?;
    lchown(&fifo, Some(PLAIN_USER), None)?;
    let marker = test.fresh("marker");
    let finished = recording(test, &["-o", &fifo.display().to_string()], &marker).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("stderr", &finished.stderr, &format!("its owner, user {PLAIN_USER}"))?;
    expect(!marker.exists(), "the command ran")?;
    // A file that cannot be replaced at the end is refused before the recording.
    let file = shared.folder.join("p.json.gz");
    fs::write(&file, "roots")?;
    let finished = recording(test, &["-o", &file.display().to_string()], &marker).by_plain_user().run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("stderr", &finished.stderr, "only that user may replace it")?;
    expect(!marker.exists(), "the command ran")
}

/// A perf.data file in a separate folder, and its path.
fn perf_data(test: &Context<'_>) -> Result<(PathBuf, String), anyhow::Error> {
    let folder = test.fresh("folder");
    fs::create_dir(&folder)?;
    let file = folder.join("perf.data");
    fs::write(&file, "the earlier one")?;
    let name = file.display().to_string();
    Ok((file, name))
}

fn names_in(folder: &Path) -> Result<Vec<String>, anyhow::Error> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = entries.collect::<Result<Vec<_>, anyhow::Error>>()?;
    names.sort();
    Ok(names)
}

fn failed_perf_data(test: &Context<'_>) -> Verdict {
    let (file, name) = perf_data(test)?;
    let output = file.with_file_name("p.json.gz").display().to_string();
    let call = test.nyquist(&["record", "-s", "-o", &output, "--perf-data", &name, "--"]);
    expect_eq("the status", call.path(&test.path("no-such-command")).run()?.code(), 127)?;
    let call =
        test.nyquist(&["record", "-s", "-o", &output, "--perf-data", &name, "--backend", "ptrace", "true"]);
    expect_eq("the status by ptrace", call.run()?.code(), 1)?;
    expect_eq("the file", fs::read_to_string(&file)?, "the earlier one".to_owned())?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    expect_eq("files", names_in(folder)?, vec!["perf.data".to_owned()])?;
    // An output that cannot seek is refused for perf.data.
    let fifo = file.with_file_name("fifo");
    expect(Command::new("mkfifo").arg(&fifo).status()?.success(), "mkfifo failed")?;
    let marker = test.fresh("marker");
    let call = recording(test, &["-o", &output, "--perf-data", &fifo.display().to_string()], &marker);
    let finished = call.run()?;
    expect_contains("stderr", &finished.stderr, "a file that can be written in any order")?;
    expect(!marker.exists(), "the command ran")
}

fn one_name(test: &Context<'_>) -> Verdict {
    let folder = test.fresh("folder");
    fs::create_dir_all(folder.join("below"))?;
    let (name, marker) = (folder.join("kept").display().to_string(), test.fresh("marker"));
    for output in [name.clone(), folder.join("below/../kept").display().to_string()] {
        let finished = recording(test, &["-o", &output, "--perf-data", &name], &marker).run()?;
        expect_eq("the status", finished.code(), 2)?;
        expect_contains("stderr", &finished.stderr, "-o and --perf-data both name")?;
    }
    expect(!marker.exists(), "the command ran")?;
    expect_eq("files", names_in(&folder)?, vec!["below".to_owned()])
}

fn old_perf_data(test: &Context<'_>) -> Verdict {
    let (file, name) = perf_data(test)?;
    let output = test.fresh("p.json.gz").display().to_string();
    let finished = recording(test, &["-o", &output, "--perf-data", &name], &test.fresh("marker")).run()?;
    if finished.stderr.contains("by ptrace") {
        return skip("perf_event_open is refused here");
    }
    finished.succeeded()?;
    expect(fs::read(&file)?.starts_with(b"PERFILE2"), "it is not a perf.data file")?;
    expect_eq("its mode", fs::metadata(&file)?.mode() & 0o7777, 0o600)?;
    let old = file.with_file_name("perf.data.old");
    expect_eq("the earlier one", fs::read_to_string(old)?, "the earlier one".to_owned())?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    expect_eq("files", names_in(folder)?.len(), 2)
}

/// Under sudo, the invoking user becomes the owner only of files that nyquist creates.
fn device(test: &Context<'_>) -> Verdict {
    let null = test.path("null");
    if !Command::new("mknod").arg(&null).args(["c", "1", "3"]).status()?.success() {
        return skip("cannot make a device here (needs root)");
    }
    let null_name = null.display().to_string();
    let output = test.fresh("p.json.gz").display().to_string();
    let id = PLAIN_USER.to_string();
    for options in [["-o", &null_name, "--profile-name", "x"], ["-o", &output, "--perf-data", &null_name]] {
        let call = recording(test, &options, &test.fresh("marker"));
        let call = call.env("SUDO_UID", id.clone()).env("SUDO_GID", id.clone()).env("SUDO_USER", "nobody");
        call.run()?.succeeded()?;
        let file = null.symlink_metadata()?;
        expect(file.file_type().is_char_device(), "the device was replaced")?;
        expect_eq("its owner", file.uid(), 0)?;
    }
    Ok(())
}

fn waits_for_reader(test: &Context<'_>) -> Verdict {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let fifo = test.fresh("fifo");
        expect(Command::new("mkfifo").arg(&fifo).status()?.success(), "mkfifo failed")?;
        let marker = test.fresh("marker");
        let running = recording(test, &["-o", &fifo.display().to_string()], &marker).start()?;
        let pid = running.pid();
        running.wait_until("it to open the FIFO", || opens_something(pid))?;
        running.signal(signal)?;
        expect_eq("the status", running.wait()?.code(), 128 + signal)?;
        expect(!marker.exists(), "the command ran")?;
    }
    Ok(())
}

/// Whether a thread of the process is in openat(2), as it is while it waits for the reader of a FIFO.
fn opens_something(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
    calls.any(|call| call.starts_with(&format!("{} ", libc::SYS_openat)))
}

fn stale_files(test: &Context<'_>) -> Verdict {
    let folder = test.path("folder");
    fs::create_dir(&folder)?;
    let make = |name: &str| {
        let path = folder.join(name);
        fs::write(&path, name).map(|()| path)
    };
    let dead = make(".x.json.gz.999.tmp")?;
    let live = make(".x.json.gz.998.tmp")?;
    let lock = File::open(&live)?;
    lock.lock()?;
    let target = make("target")?;
    symlink(&target, folder.join(".x.json.gz.997.tmp"))?;
    make(".y.json.gz.999.tmp")?;
    make(".x.json.gz.9x9.tmp")?;
    if crate::sys::is_root() {
        lchown(make(".x.json.gz.996.tmp")?, Some(PLAIN_USER), None)?;
    }
    let output = folder.join("x.json.gz");
    // A recorder that is killed also leaves a temporary file.
    let call =
        test.nyquist(&["record", "-s", "-o"]).path(&output).args(&["--"]).path(&test.workload("endless"));
    let recorder = call.args(&["1"]).start()?;
    recorder.wait_until_recording()?;
    let own = folder.join(format!(".x.json.gz.{}.tmp", recorder.pid()));
    expect(own.exists(), "the recorder has no temporary file of this name")?;
    recorder.signal(libc::SIGKILL)?;
    recorder.wait()?;
    recording(test, &["-o", &output.display().to_string()], &test.fresh("marker")).run()?.succeeded()?;
    expect(!dead.exists() && !own.exists(), "a dead recorder's file was left")?;
    let mut expected = vec![".x.json.gz.997.tmp", ".x.json.gz.998.tmp", ".x.json.gz.9x9.tmp"];
    expected.extend([".y.json.gz.999.tmp", "target", "x.json.gz"]);
    if crate::sys::is_root() {
        expected.insert(0, ".x.json.gz.996.tmp");
    }
    expect_eq("files that are left", names_in(&folder)?, expected.into_iter().map(str::to_owned).collect())
}

/// If the disk of the requested path is full, the profile is saved in a new folder that no other user can
/// read.
fn private_folder(test: &Context<'_>) -> Verdict {
    let full = test.path("full");
    if !Command::new("mknod").arg(&full).args(["c", "1", "7"]).status()?.success() {
        return skip("cannot make a device here (needs root)");
    }
    let temporary = test.path("temporary");
    fs::create_dir(&temporary)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777))?;
    let call = recording(test, &["-o", &full.display().to_string()], &test.fresh("marker"));
    let finished = call.env("TMPDIR", temporary.display().to_string()).run()?;
    expect_eq("the status", finished.code(), 1)?;
    let names = names_in(&temporary)?;
    let [name] = names.as_slice() else { return expect(false, format_args!("files: {names:?}")) };
    let folder = temporary.join(name);
    expect_eq("the folder's mode", fs::metadata(&folder)?.mode() & 0o7777, 0o700)?;
    let file = folder.join("profile.json.gz");
    expect_contains("stderr", &finished.stderr, &file.display().to_string())?;
    expect_eq("the file's mode", fs::metadata(&file)?.mode() & 0o7777, 0o600)?;
    Profile::read(&file)?;
    Ok(())
}
