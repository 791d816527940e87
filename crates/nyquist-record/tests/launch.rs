//! Launching commands: how they end, what they inherit, and what they leave behind.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use nyquist_record::linux::launch::{ChildExit, ExitStatus, LaunchError, prepare, prepare_with_output};
use nyquist_record::linux::{Command, Credentials};

/// A folder for a single test, removed afterwards.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // It exists if an earlier run was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of a file that is not there.
    fn missing(&self, name: &str) -> String {
        self.0.join("missing").join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file from another process. No program can be run while a process has its file open for
    /// writing (`ETXTBSY`). Parallel tests fork children, which would inherit this process's descriptor while
    /// it writes.
    fn file(&self, name: &str, content: &str, mode: u32) -> String {
        let (path, source) = (self.0.join(name), self.0.join(format!("{name}.source")));
        fs::write(&source, content).unwrap();
        let copied = std::process::Command::new("cp").args([&source, &path]).status().unwrap();
        assert!(copied.success(), "{} cannot be made", path.display());
        fs::remove_file(source).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn argv(argv: &[&str]) -> Command {
    Command::from_words(argv.iter().map(Into::into)).unwrap()
}

fn run(command: &Command) -> Result<ChildExit, LaunchError> {
    Ok(prepare(command)?.start()?.wait().unwrap())
}

/// What a shell script prints into `$OUT`.
fn output_of(name: &str, script: &str) -> String {
    let folder = TestFolder::new(name);
    let out = folder.file("out", "", 0o666);
    let ended = run(&argv(&[&format!("OUT={out}"), "sh", "-c", &format!("{{ {script}; }} > $OUT")])).unwrap();
    assert_eq!(ended.status, ExitStatus::Code(0));
    fs::read_to_string(&out).unwrap()
}

#[test]
fn a_command_apart_has_other_output_and_no_input() {
    let folder = TestFolder::new("apart");
    let path = folder.file("out", "", 0o666);
    let output = fs::File::options().write(true).open(&path).unwrap();
    let command = argv(&["sh", "-c", "cat; echo printed; echo complained >&2"]);
    let ended = prepare_with_output(&command, output.as_fd()).unwrap().start().unwrap().wait().unwrap();
    assert_eq!(ended.status, ExitStatus::Code(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), "printed\ncomplained\n");
}

#[test]
fn a_script_without_interpreter_is_run_by_sh() {
    let folder = TestFolder::new("script");
    let script = folder.file("script", "exit $(($# + $1))\n", 0o755);
    let ended = run(&argv(&[&script, "4", "x"])).unwrap();
    assert_eq!(ended.status, ExitStatus::Code(6));
}

#[test]
fn the_exit_status_is_the_commands() {
    let check = |script, status, code| {
        let ended = run(&argv(&["sh", "-c", script])).unwrap();
        assert_eq!((ended.status, ended.status.shell_code()), (status, code), "{script}");
    };
    check("true", ExitStatus::Code(0), 0);
    check("exit 42", ExitStatus::Code(42), 42);
    check("kill -SEGV $$", ExitStatus::Signal(11), 139);
    // A job that a shell starts in the background ignores this signal, and so do all commands in it.
    let alone = std::process::Command::new("sh").args(["-c", "kill -INT $$"]).status().unwrap();
    let (status, code) = match alone.signal() {
        Some(_) => (ExitStatus::Signal(2), 130),
        None => (ExitStatus::Code(0), 0),
    };
    check("kill -INT $$", status, code);
}

#[test]
fn a_command_that_cannot_start_says_why() {
    let folder = TestFolder::new("cannot_be_started");
    let check = |program: &str, code, reason: &str| {
        let error = run(&argv(&[program])).unwrap_err();
        assert_eq!(error.exit_code(), code, "{error}");
        assert!(error.to_string().contains(program) && error.to_string().contains(reason), "{error}");
    };
    check("nyquist-no-such-program", 127, "No such file");
    check(&folder.missing("program"), 127, "No such file");
    check("/dev/null/program", 126, "Not a directory");
    check(&folder.file("not_executable", "#!/bin/sh\n", 0o644), 126, "Permission denied");
    check(&folder.file("no_program", "\x7fELF\0\0", 0o755), 126, "Exec format");
    check(folder.0.to_str().unwrap(), 126, "Permission denied");
}

#[test]
fn a_nonexecutable_file_hides_none_later_in_path() {
    let (first, second) = (TestFolder::new("path_first"), TestFolder::new("path_second"));
    first.file("tool", "#!/bin/sh\nexit 1\n", 0o644);
    second.file("tool", "#!/bin/sh\nexit 7\n", 0o755);
    let missing = first.missing("folder");
    let path = format!("PATH={}:{missing}:{}", first.0.display(), second.0.display());
    assert_eq!(run(&argv(&[&path, "tool"])).unwrap().status, ExitStatus::Code(7));
    let path = format!("PATH={}", first.0.display());
    assert_eq!(run(&argv(&[&path, "tool"])).unwrap_err().exit_code(), 126);
}

#[test]
fn variables_before_the_command_are_set_for_it() {
    let ended = run(&argv(&["ANSWER=42", "sh", "-c", "exit $ANSWER"])).unwrap();
    assert_eq!(ended.status, ExitStatus::Code(42));
}

#[test]
fn an_unstarted_child_runs_nothing_and_is_reaped() {
    let folder = TestFolder::new("never_started");
    let made = folder.0.join("made");
    let child = prepare(&argv(&["touch", made.to_str().unwrap()])).unwrap();
    let process = format!("/proc/{}", child.pid().0);
    assert!(Path::new(&process).exists());
    drop(child);
    assert!(!Path::new(&process).exists(), "the child is still there");
    assert!(!made.exists(), "the command ran");
}

#[test]
fn a_failed_start_leaves_no_zombie() {
    let folder = TestFolder::new("failed_start");
    let child = prepare(&argv(&[&folder.missing("program")])).unwrap();
    let process = format!("/proc/{}", child.pid().0);
    child.start().unwrap_err();
    assert!(!Path::new(&process).exists());
}

#[test]
fn signals_are_as_a_shell_gives_them() {
    let status = output_of("signals", "cat /proc/self/status");
    let bits = |name: &str| {
        let digits = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(digits.trim(), 16).unwrap()
    };
    assert_eq!(bits("SigBlk:"), 0);
    let sigpipe = 1 << (13 - 1);
    assert_eq!(bits("SigIgn:") & sigpipe, 0, "Rust's runtime ignores SIGPIPE, the command must not");
    assert_eq!(bits("SigCgt:"), 0);
}

/// What the inheritable descriptors of this process refer to.
fn inherited_descriptors() -> Vec<String> {
    let close_on_exec = 0o2_000_000;
    let is_inherited = |descriptor: &str| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).unwrap() & close_on_exec == 0)
    };
    let all = fs::read_dir("/proc/self/fd").unwrap();
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let links =
        names.filter(|name| is_inherited(name)).map(|name| fs::read_link(format!("/proc/self/fd/{name}")));
    links.map(|link| link.unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_command_inherits_no_descriptor_of_ours() {
    let inherited = inherited_descriptors();
    let seen = output_of("descriptors", "for fd in /proc/$$/fd/*; do readlink $fd; done; true");
    let ours = seen.lines().filter(|seen| !seen.ends_with("/descriptors/out"));
    let unexpected: Vec<_> = ours.filter(|seen| !inherited.iter().any(|given| given == seen)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}, where {inherited:?} was given");
    assert!(seen.lines().count() >= 3, "{seen}");
}

#[test]
fn a_signal_reaches_the_command_until_its_end() {
    let running = prepare(&argv(&["sleep", "1000"])).unwrap().start().unwrap();
    let signaller = running.signaller();
    signaller.send(15).unwrap();
    assert_eq!(running.wait().unwrap().status, ExitStatus::Signal(15));
    signaller.send(15).unwrap();
    assert_eq!(running.wait().unwrap().status, ExitStatus::Signal(15), "requested twice");
}

#[test]
fn the_command_can_run_as_another_user() {
    let is_root = fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0\t");
    let run_as = Some(Credentials { uid: 65534, gid: 65533, groups: vec![65532] });
    let script = "[ \"$(id -u) $(id -g) $(id -G)\" = '65534 65533 65533 65532' ]";
    let result = run(&Command { run_as, ..argv(&["sh", "-c", script]) });
    if is_root {
        assert_eq!(result.unwrap().status, ExitStatus::Code(0));
    } else {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("cannot be run as user 65534"), "{error}");
    }
}
