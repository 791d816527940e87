//! Perf maps and jitdumps that another user may have written, and large ones. Untrusted files are not used,
//! and a message says so.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, need_root};
use super::invocation::{Finished, Invocation, PLAIN_USER, Running};
use super::made_recording::MadeRecording;
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_perf_map_of_another_user_is_not_trusted", of_another_user),
    Test::new("a_perf_map_that_is_a_link_is_not_followed", link),
    Test::new("a_perf_map_that_is_a_fifo_is_not_opened", fifo),
    Test::new("only_a_jitdump_that_is_trusted_is_removed", jitdump),
    Test::new("a_perf_map_beyond_memory_loses_no_profile", large_map).exclusive("takes much memory"),
    Test::new("what_a_jitdump_claims_takes_no_memory", large_claim),
    Test::new("a_file_with_anothers_id_does_not_name_theirs", same_id),
    Test::new("a_packed_recording_is_its_files_owners", packed),
];

/// The name of the generated code in the workload's own file.
const NAME: &str = "made_here";

/// A user id that owns nothing here.
const STRANGER: u32 = 4711;

/// A workload that has written its file and continues to work. At the end, it is killed and the file is
/// removed.
struct Target<'a> {
    running: Option<Running<'a>>,
    file: PathBuf,
}

impl<'a> Target<'a> {
    fn start(test: &'a Context<'a>, workload: &str) -> Result<Self, Stop> {
        let ready = test.fresh("ready");
        let call = test.program(test.workload(workload).display().to_string()).args(&["60000", NAME]);
        let running = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
        running.wait_for_file(&ready)?;
        let pid = running.pid();
        let file = match workload {
            "made_code" => PathBuf::from(format!("/tmp/perf-{pid}.map")),
            _ => test.path(&format!("jit-{pid}.dump")),
        };
        Ok(Self { running: Some(running), file })
    }

    fn pid(&self) -> String {
        self.running.as_ref().map(|running| running.pid().to_string()).unwrap_or_default()
    }

    /// Records the workload for a while.
    fn record(
        &self,
        test: &Context<'_>,
        options: &[&str],
        adapt: impl Fn(Invocation<'_>) -> Invocation<'_>,
    ) -> Result<(Profile, Finished), Stop> {
        let output = test.fresh("profile.json.gz");
        let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options);
        let finished = adapt(call.args(&["-d", "0.5", "-p", &self.pid()])).run()?;
        finished.clone().succeeded()?;
        Ok((Profile::read(&output)?, finished))
    }

    /// Checks that its file is not used, and that a message says so.
    fn expect_refused(&self, test: &Context<'_>, options: &[&str], why: &str) -> Verdict {
        let (profile, finished) = self.record(test, options, |call| call)?;
        let message = format!("{} of process {} is not used: {why}", self.file.display(), self.pid());
        expect_contains("stderr", &finished.stderr, &message)?;
        expect(finished.stderr.matches("is not used").count() == 1, "it is said more than once")?;
        let functions = profile.functions();
        expect(!functions.keys().any(|name| is_name(name)), format_args!("it was used: {functions:?}"))
    }

    fn expect_used(&self, test: &Context<'_>, options: &[&str]) -> Verdict {
        let (profile, finished) = self.record(test, options, |call| call)?;
        expect(!finished.stderr.contains("is not used"), &finished.stderr)?;
        let functions = profile.functions();
        expect(functions.keys().any(|name| is_name(name)), format_args!("no name: {functions:?}"))
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            const SIGKILL: i32 = 9;
            let _ = running.signal(SIGKILL);
            let _ = running.wait();
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// Whether this is the name in a perf map, or the one that the workload with a jitdump gives its code.
fn is_name(name: &str) -> bool {
    name == NAME || name == "dumped_code"
}

fn of_another_user(test: &Context<'_>) -> Verdict {
    need_root()?;
    let target = Target::start(test, "made_code")?;
    chown(&target.file, Some(STRANGER), None)?;
    target.expect_refused(
        test,
        &[],
        "the file belongs to user 4711, who is neither the process's user nor root",
    )?;
    chown(&target.file, Some(0), None)?;
    target.expect_used(test, &[])
}

fn link(test: &Context<'_>) -> Verdict {
    let target = Target::start(test, "made_code")?;
    let other = test.path("names");
    fs::copy(&target.file, &other)?;
    fs::remove_file(&target.file)?;
    symlink(&other, &target.file)?;
    target.expect_refused(test, &[], "the file or its folder is a symbolic link")
}

fn fifo(test: &Context<'_>) -> Verdict {
    let target = Target::start(test, "made_code")?;
    fs::remove_file(&target.file)?;
    test.program("mkfifo").path(&target.file).run()?.succeeded()?;
    target.expect_refused(test, &[], "the file is not a regular file")
}

fn jitdump(test: &Context<'_>) -> Verdict {
    const UNLINK: &[&str] = &["--unlink-aux-files"];
    need_root()?;
    let target = Target::start(test, "dumped_code")?;
    chown(&target.file, Some(STRANGER), None)?;
    target.expect_refused(test, UNLINK, "the file belongs to user 4711")?;
    chown(&target.file, Some(0), None)?;
    // Another file at the same path is not the mapped file, whoever owns it.
    let moved = test.path("moved");
    fs::rename(&target.file, &moved)?;
    fs::write(&target.file, "something else")?;
    target.record(test, UNLINK, |call| call)?;
    expect(target.file.exists(), "another file was removed")?;
    fs::rename(&moved, &target.file)?;
    target.expect_used(test, UNLINK)?;
    expect(!target.file.exists(), "it is still there")
}

/// Limits the recorder's address space. Its rings and threads also use some of it.
fn with_little_memory(call: Invocation<'_>) -> Invocation<'_> {
    call.under(&["sh", "-c", "ulimit -v 1000000; exec \"$0\" \"$@\""])
}

fn large_map(test: &Context<'_>) -> Verdict {
    const LINES: u64 = 6_000_000;
    let target = Target::start(test, "made_code")?;
    let mut map = BufWriter::new(append(&target.file)?);
    for number in 0..LINES {
        writeln!(map, "{:x} 10 LazyCompile:~a_function_{number}", 0x7000_0000_0000 + 16 * number)?;
    }
    map.flush()?;
    drop(map);
    let (profile, finished) = target.record(test, &[], with_little_memory)?;
    expect_contains("stderr", &finished.stderr, "not all of the perf map")?;
    expect_contains("stderr", &finished.stderr, "--max-memory")?;
    // The beginning of the map was read.
    let functions = profile.functions();
    expect(functions.contains_key(NAME), format_args!("no name: {functions:?}"))
}

fn large_claim(test: &Context<'_>) -> Verdict {
    let target = Target::start(test, "dumped_code")?;
    let mut dump = append(&target.file)?;
    let before = dump.metadata()?.len();
    // The header claims lines for 4 GB of code, but the file only has a hole there.
    dump.write_all(&[&2_u32.to_le_bytes()[..], &0xffff_fff0_u32.to_le_bytes(), &[0; 8]].concat())?;
    dump.set_len(before + 0xffff_fff0)?;
    let (profile, finished) = target.record(test, &[], with_little_memory)?;
    expect_contains("stderr", &finished.stderr, "not all of the jitdump")?;
    let functions = profile.functions();
    expect(functions.keys().any(|name| is_name(name)), format_args!("no name: {functions:?}"))
}

fn append(path: &Path) -> Result<File, anyhow::Error> {
    File::options().append(true).open(path).with_context(|| format!("cannot append to {}", path.display()))
}

/// A plain user's program has the build id of root's program, but other names.
fn same_id(test: &Context<'_>) -> Verdict {
    const MADE_UP: &[u8] = b"fake_loop";
    need_root()?;
    let bytes = fs::read(test.workload("endless"))?;
    let mut forged = bytes.clone();
    for at in 0..forged.len() - MADE_UP.len() {
        if bytes[at..].starts_with(b"main_loop") {
            forged[at..at + MADE_UP.len()].copy_from_slice(MADE_UP);
        }
    }
    let place = |name: &str, bytes: &[u8], owner| -> Result<PathBuf, Stop> {
        let program = test.path(name).join("program");
        fs::create_dir(test.path(name))?;
        fs::write(&program, bytes)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        chown(&program, Some(owner), None)?;
        Ok(program)
    };
    let (theirs, own) = (place("theirs", &forged, PLAIN_USER)?, place("own", &bytes, 0)?);
    let forger = test.program(&theirs).args(&["1"]).by_plain_user().start()?;
    let program = test.program(&own).args(&["1"]).start()?;
    let output = test.fresh("profile.json.gz");
    let pids = format!("{},{}", forger.pid(), program.pid());
    test.nyquist(&["record", "-s", "-d", "1", "-p", &pids, "-o"]).path(&output).run()?.succeeded()?;
    for running in [forger, program] {
        running.signal(libc::SIGKILL)?;
        running.wait()?;
    }
    let functions = Profile::read(&output)?.functions();
    let both = ["main_loop", "fake_loop"].iter().all(|name| functions.contains_key(*name));
    expect(both, format_args!("one has the names of the other: {functions:?}"))
}

/// The owner of a packed recording is that of its file, so that user's perf map counts, and no longer after the file
/// is another user's.
fn packed(test: &Context<'_>) -> Verdict {
    const PID: u32 = 4_190_001;
    need_root()?;
    let mut recording = MadeRecording::default();
    recording.map(PID, 0x10_0000, 0x1000, "//anon");
    recording.sample(PID, 0x10_0010);
    let (data, map) = (test.path("perf.data"), test.path(&format!("perf-{PID}.map")));
    fs::write(&data, recording.bytes())?;
    fs::write(&map, format!("100000 100 {NAME}\n"))?;
    chown(&map, Some(PLAIN_USER), None)?;
    test.program("xz").path(&data).run()?.succeeded()?;
    let packed = test.path("perf.data.xz");
    for (owner, is_trusted) in [(PLAIN_USER, true), (STRANGER, false)] {
        chown(&packed, Some(owner), None)?;
        let output = test.fresh("profile.json.gz");
        test.nyquist(&["import", "-s", "-o"]).path(&output).path(&packed).run()?.succeeded()?;
        let is_named = Profile::read(&output)?.functions().contains_key(NAME);
        expect(is_named == is_trusted, format_args!("the file is of user {owner}: named {is_named}"))?;
    }
    Ok(())
}
