//! Programs and recordings whose mappings or arguments would exhaust the memory of whoever reads them. The limit of
//! memory in these tests is far below what they would take.

use std::fs;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_measured, need_root};
use super::invocation::{Finished, Running};
use super::made_recording::MadeRecording;
use super::profile::{Profile, Thread};
use super::running_targets::{end, process_cpu_ms, working};
use super::test::Test;

/// Why these tests run alone.
const MEMORY: &str = "takes much memory";

pub(super) const TESTS: &[Test] = &[
    Test::new("children_of_many_mappings_take_little_memory", |test| children(test, false)).exclusive(MEMORY),
    Test::new("system_wide_children_take_little_memory", |test| children(test, true)).exclusive(MEMORY),
    Test::new("mappings_from_before_take_little_memory", before).exclusive(MEMORY),
    Test::new("endless_mappings_lose_only_stacks", endless).exclusive(MEMORY),
    Test::new("imported_forks_take_little_memory", many_forks).exclusive(MEMORY),
    Test::new("imported_mappings_lose_only_stacks", too_many).exclusive(MEMORY),
    Test::new("imported_new_processes_take_little_memory", new_processes).exclusive(MEMORY),
    Test::new("long_arguments_take_little_memory", arguments).exclusive(MEMORY),
];

/// The memory that nyquist may take in these tests, in bytes.
const LIMIT: u64 = 700 << 20;

fn limited() -> [String; 2] {
    ["prlimit".to_owned(), format!("--data={LIMIT}:{LIMIT}")]
}

/// A program of a plain user that makes its mappings when it is told to.
struct Attacker<'a> {
    running: Running<'a>,
    all_mapped: std::path::PathBuf,
}

impl<'a> Attacker<'a> {
    fn start(test: &'a Context<'a>, kind: &str, numbers: &[&str]) -> Result<Self, Stop> {
        let (is_ready, all_mapped) = (test.fresh("ready"), test.fresh("mapped"));
        let call = test.program(test.workload("hostile_mappings")).args(&[kind]).path(&all_mapped);
        let call = call.args(numbers).by_plain_user().env("WORKLOAD_READY", is_ready.display().to_string());
        let running = call.start()?;
        running.wait_for_file(&is_ready)?;
        Ok(Self { running, all_mapped })
    }

    /// Lets it make its mappings, and then work for a while.
    fn attack(&self) -> Verdict {
        self.running.signal(libc::SIGUSR1)?;
        self.running.wait_for_file(&self.all_mapped)?;
        let begun = process_cpu_ms(self.running.pid())?;
        let works = || process_cpu_ms(self.running.pid()).is_ok_and(|now| now > begun + 300.0);
        Ok(self.running.wait_until("the program to work", works)?)
    }
}

/// Records while an attacker makes its mappings.
fn record(
    test: &Context<'_>,
    options: &[&str],
    attacker: &Attacker<'_>,
) -> Result<(Profile, Finished), Stop> {
    let output = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options);
    let recorder = call.under(&limited().each_ref().map(String::as_str)).start()?;
    recorder.wait_until_recording()?;
    attacker.attack()?;
    recorder.signal(libc::SIGINT)?;
    let finished = recorder.wait()?.succeeded()?;
    Ok((Profile::read(&output)?, finished))
}

/// The threads of a process.
fn threads_of(profile: &Profile, pid: u32) -> impl Iterator<Item = &Thread> {
    let pid = pid.to_string();
    profile.threads.iter().filter(move |thread| thread.pid == pid)
}

/// The share of a process's weight whose stacks have a function.
fn share_of(profile: &Profile, pid: u32, function: &str) -> f64 {
    let (mut with, mut all) = (0.0, 0.0);
    for (stack, weight) in threads_of(profile, pid).flat_map(Thread::stacks) {
        all += weight;
        with += if stack.iter().any(|frame| frame.function.contains(function)) { weight } else { 0.0 };
    }
    with / f64::max(all, 1.0)
}

/// 30,000 mappings, and 1,500 living children that each have changed one of them. All stacks are whole.
fn children(test: &Context<'_>, all: bool) -> Verdict {
    need_root()?;
    let attacker = Attacker::start(test, "children", &["30000", "1500"])?;
    let pid = attacker.running.pid();
    let options = if all { ["-a".to_owned()].to_vec() } else { vec!["-p".to_owned(), pid.to_string()] };
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (profile, finished) = record(test, &options, &attacker)?;
    end(attacker.running)?;
    let names = |thread: &&Thread| thread.process.starts_with("hostile_map");
    let processes = profile.threads.iter().filter(names).filter(|thread| thread.is_main).count();
    expect_measured(processes > 200, format_args!("only {processes} processes have samples"))?;
    let is_missing = finished.stderr.contains("stacks are missing");
    expect(!is_missing, format_args!("stacks are missing: {}", finished.stderr))?;
    let share = share_of(&profile, pid, "works_on");
    expect_measured(share > 0.02, format_args!("works_on has a share of {share:.3}"))
}

/// Fifteen hundred processes with 30,000 mappings each are there when the recording begins.
fn before(test: &Context<'_>) -> Verdict {
    need_root()?;
    let attacker = Attacker::start(test, "children", &["30000", "1500"])?;
    attacker.attack()?;
    let output = test.path("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-a", "-d", "0.5", "-o"]).path(&output);
    let finished = call.under(&limited().each_ref().map(String::as_str)).run()?;
    end(attacker.running)?;
    finished.succeeded()?;
    expect(!Profile::read(&output)?.threads.is_empty(), "the profile is empty")
}

/// Each mapping is at a new address, and the kernel does not report that the one before is gone. In the end the
/// attacker has no stacks. Another process still has its own.
fn endless(test: &Context<'_>) -> Verdict {
    need_root()?;
    let other = working(test, &["endless", "1"])?;
    let attacker = Attacker::start(test, "fresh", &["4000000"])?;
    let (pid, other_pid) = (attacker.running.pid(), other.pid());
    let (profile, finished) = record(test, &["-a"], &attacker)?;
    end(attacker.running)?;
    end(other)?;
    let says = format!("stacks are missing of process {pid} (hostile_map");
    expect_contains("stderr", &finished.stderr, &says)?;
    expect_contains("stderr", &finished.stderr, "--max-memory")?;
    let share = share_of(&profile, pid, "(truncated: the process's mappings took too much memory)");
    expect_measured(share > 0.02, format_args!("a share of {share:.3} is marked"))?;
    let share = share_of(&profile, other_pid, "main_loop");
    expect_measured(share > 0.95, format_args!("main_loop has a share of {share:.3} of the other process"))
}

fn import(test: &Context<'_>, recording: &MadeRecording, limit: &str) -> Result<(Profile, Finished), Stop> {
    let (input, output) = (test.fresh("perf.data"), test.fresh("profile.json.gz"));
    fs::write(&input, recording.bytes())?;
    let call = test.nyquist(&["import", "-s", "--no-cache"]).path(&input).args(&["-o"]).path(&output);
    let finished = call.env("NYQUIST_MAX_MEMORY", limit).run()?.succeeded()?;
    Ok((Profile::read(&output)?, finished))
}

fn many_forks(test: &Context<'_>) -> Verdict {
    const MAPPINGS: u64 = 30_000;
    const CHILDREN: u32 = 1500;
    let mut recording = MadeRecording::default();
    let at = |number: u64| 0x1_0000 + number * 0x2000;
    (0..MAPPINGS).for_each(|number| recording.map(1, at(number), 0x1000, &format!("/x/lib{}", number % 50)));
    for child in 10..10 + CHILDREN {
        recording.fork(child, 1);
        recording.map(child, at(child.into()), 0x1000, "/x/other");
        recording.sample(child, at(child.into()) + 0x10);
    }
    let (profile, finished) = import(test, &recording, "300M")?;
    expect(!finished.stderr.contains("stacks are missing"), &finished.stderr)?;
    let processes = profile.threads.len();
    expect(processes == CHILDREN as usize, format_args!("{processes} processes have samples"))?;
    profile.lib("other")?;
    Ok(())
}

/// Each sample is of another process. Before their records were small, this took 330 MB.
fn new_processes(test: &Context<'_>) -> Verdict {
    // Just more than a table of 131,072 places has room for.
    const PROCESSES: u32 = 115_000;
    let mut recording = MadeRecording::default();
    (1..=PROCESSES).for_each(|pid| recording.sample(pid, 0x40_1000));
    let (input, output) = (test.fresh("perf.data"), test.fresh("profile.json.gz"));
    fs::write(&input, recording.bytes())?;
    let import = ["import", "-s", "--no-cache", "--no-symbols"];
    let call = test.nyquist(&import).path(&input).args(&["-o"]).path(&output);
    call.under(&["prlimit", "--data=293601280:293601280"]).run()?.succeeded()?;
    expect(output.is_file(), "there is no profile")
}

fn too_many(test: &Context<'_>) -> Verdict {
    let mut recording = MadeRecording::default();
    recording.map(1, 0x40_0000, 0x1000, "/x/small");
    for number in 0..4_000_000 {
        recording.map(2, 0x1_0000 + number * 0x2000, 0x1000, "/x/a");
    }
    for pid in [1, 2] {
        recording.sample(pid, 0x40_0010);
    }
    let (profile, finished) = import(test, &recording, "1500M")?;
    expect_contains("stderr", &finished.stderr, "stacks are missing of process 2 (<2>): ")?;
    let small = profile.lib("small").is_ok() && profile.lib("a").is_err();
    expect(small, format_args!("the libs are {}", profile.json["libs"]))
}

/// Many programs have arguments of two megabytes.
fn arguments(test: &Context<'_>) -> Verdict {
    let script = "x=$(head -c 100000 /dev/zero | tr '\\0' a); \
         for i in $(seq 136); do /bin/echo $x $x $x $x $x $x $x $x $x $x $x $x $x $x $x $x $x $x; done > /dev/null";
    let limit = limited();
    let recording = test.record_command(&["sh", "-c", script]).options(&["--include-args"]);
    let recorded =
        recording.with(move |call| call.under(&limit.each_ref().map(String::as_str))).run_well()?;
    expect_contains("stderr", &recorded.finished.stderr, "programs are cut: names have at most 8 KiB")?;
    let longest = recorded.profile.threads.iter().map(|thread| thread.process.len()).max();
    let is_cut = longest.is_some_and(|longest| longest < 9000);
    expect(is_cut, format_args!("the longest name has {longest:?} bytes"))
}
