//! Records a program whose shares are known, with the recorder of the system that this runs on. `cargo test` runs it on
//! every system, so that the first person with another machine has a verdict.
//!
//! `NYQUIST_SKIP_NATIVE` has the names of the tests that a machine forbids, such as `attached`.

mod known_shares;

use serde_json::Value;
use std::env;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How far a share may be from the truth. A thousand samples have a standard error of 1.4 %.
const TOLERANCE: f64 = 0.06;

/// A folder of a test, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("nyquist-native-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn profile(&self) -> PathBuf {
        self.0.join("profile.json.gz")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a test is left out on this machine, by name.
fn is_skipped(name: &str) -> bool {
    let names = env::var("NYQUIST_SKIP_NATIVE").unwrap_or_default();
    let is_named = names.split(',').any(|skipped| skipped.trim() == name);
    if is_named {
        eprintln!("skipped by NYQUIST_SKIP_NATIVE: {name}");
    }
    is_named
}

/// The program: this one, which then only runs `the_recorded_program`.
const PROGRAM: &str = "NYQUIST_KNOWN_SHARES";

/// The file that an endless program creates when it has worked as long as one that ends.
const WORKED: &str = "NYQUIST_KNOWN_SHARES_WORKED";

#[test]
fn the_recorded_program() {
    if let Ok(argv) = env::var(PROGRAM) {
        known_shares::run(&argv);
    }
}

/// The arguments that start it.
fn program() -> Vec<PathBuf> {
    let own = env::current_exe().unwrap();
    vec![own, "--exact".into(), "the_recorded_program".into(), "--nocapture".into()]
}

/// The command that starts it by itself.
fn start_program(argv: &str) -> Running {
    let program = program();
    let mut command = Command::new(&program[0]);
    Running(command.args(&program[1..]).env(PROGRAM, argv).stdout(Stdio::null()).spawn().unwrap())
}

fn nyquist(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nyquist"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn succeeded(output: Output, what: &str) -> Output {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{error}", output.status);
    output
}

/// Records a command of the program.
fn record(folder: &Folder, argv: &str) -> Output {
    recorder(folder, argv).output().unwrap()
}

fn recorder(folder: &Folder, argv: &str) -> Command {
    let mut command = nyquist(&["record", "--save-only", "-o"]);
    command.arg(folder.profile()).arg("--").args(program()).env(PROGRAM, argv);
    command
}

/// The report of a profile, with all functions.
fn report(folder: &Folder, options: &[&str]) -> Value {
    let mut command = nyquist(&["report", "--json", "--limit", "0"]);
    let output = command.args(options).arg(folder.profile()).output().unwrap();
    serde_json::from_slice(&succeeded(output, "report").stdout).unwrap()
}

/// The share of a function, with what it calls, in what both functions have. Without optimisation they call others.
fn check_shares(report: &Value) {
    let total = |name: &str| {
        let rows = report["functions"].as_array().into_iter().flatten();
        let rows = rows.filter(|row| row["function"].as_str().is_some_and(|it| it.contains(name)));
        rows.filter_map(|row| row["total"].as_f64()).sum::<f64>()
    };
    let (three, one) = (total("three_quarters"), total("one_quarter"));
    let all = three + one;
    assert!(all > 300.0, "only {all} ms are in the two functions: {report:#}");
    let share = three / all;
    assert!((share - 0.75).abs() < TOLERANCE, "three_quarters has {share:.3} of both, which is 0.75");
}

#[test]
fn a_launched_program_has_its_shares() {
    if is_skipped("launched") {
        return;
    }
    let folder = Folder::new("launched");
    succeeded(record(&folder, "shares"), "record");
    check_shares(&report(&folder, &[]));
}

#[test]
fn a_child_process_has_its_shares() {
    if is_skipped("children") {
        return;
    }
    let folder = Folder::new("children");
    succeeded(record(&folder, "parent"), "record");
    let report = report(&folder, &[]);
    check_shares(&report);
    assert!(report["process_count"].as_u64() >= Some(1), "{report:#}");
}

#[test]
fn waiting_threads_take_no_share() {
    if is_skipped("waiting") {
        return;
    }
    let folder = Folder::new("waiting");
    succeeded(record(&folder, "waiting"), "record");
    let report = report(&folder, &[]);
    check_shares(&report);
    let rows = report["functions"].as_array().into_iter().flatten();
    let waits = rows.filter(|row| row["function"].as_str().is_some_and(|it| it.ends_with("::waits")));
    let share: f64 = waits.filter_map(|row| row["total_share"].as_f64()).sum();
    assert!(share < 0.1, "the threads that wait have {share:.3} of all CPU time");
}

#[test]
fn the_programs_status_is_passed_on() {
    if is_skipped("status") {
        return;
    }
    let folder = Folder::new("status");
    let output = record(&folder, "status");
    assert_eq!(
        output.status.code(),
        Some(known_shares::STATUS),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A program that is ended with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_attached_program_has_its_shares() {
    if is_skipped("attached") {
        return;
    }
    let folder = Folder::new("attached");
    let running = start_program("endless");
    let pid = running.0.id().to_string();
    let mut command = nyquist(&["record", "--save-only", "-d", "2", "-p", &pid, "-o"]);
    succeeded(command.arg(folder.profile()).output().unwrap(), "record -p");
    check_shares(&report(&folder, &[]));
}

#[test]
fn the_viewer_answers() {
    if is_skipped("viewer") {
        return;
    }
    let folder = Folder::new("viewer");
    succeeded(record(&folder, "shares"), "record");
    let log = folder.0.join("log");
    let mut command = nyquist(&["load", "--no-open"]);
    let file = File::create(&log).unwrap();
    command.arg(folder.profile()).stdout(file.try_clone().unwrap()).stderr(file);
    let _server = Running(command.spawn().unwrap());
    let url = wait_for_url(&log);
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("<html"), "{answer}");
}

/// Waits until the server has printed the address of its own viewer.
fn wait_for_url(log: &Path) -> String {
    let printed = || std::fs::read_to_string(log).unwrap_or_default();
    let url = || {
        let text = printed();
        let url = text.lines().find_map(|line| Some(line.split_once("Built-in viewer")?.1));
        url.filter(|_| text.ends_with('\n')).map(|url| url.trim().to_owned())
    };
    assert!(comes_true(|| url().is_some()), "no address was printed: {}", printed());
    url().unwrap()
}

/// Waits until a condition holds. Returns whether it does in time.
fn comes_true(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_mins(1);
    while !holds() && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
    holds()
}

/// Ctrl-C ends a recording with a profile. On Windows it would reach the test's own console, too.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_a_profile() {
    if is_skipped("ctrl-c") {
        return;
    }
    let folder = Folder::new("ctrl-c");
    let worked = folder.0.join("worked");
    let mut recorder = recorder(&folder, "endless");
    let recorder = recorder.env(WORKED, &worked).stderr(Stdio::piped()).spawn().unwrap();
    assert!(comes_true(|| worked.exists()), "the program does not work");
    Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap();
    let output = recorder.wait_with_output().unwrap();
    assert!(folder.profile().exists(), "{}", String::from_utf8_lossy(&output.stderr));
    check_shares(&report(&folder, &[]));
}
