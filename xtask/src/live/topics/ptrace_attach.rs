//! Attaching by ptrace where `perf_event_open` is refused: to processes and to all of their descendants.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use super::by::refused;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::invocation::Invocation;
use super::profile::{Frame, Profile, Thread};
use super::ptrace::{cpu_time, least_cpu_time, whole_share};
use super::running_targets::{end, process_cpu_ms, working};
use super::test::{SHARES, Test};
use crate::sys::monotonic_ns;

pub(super) const TESTS: &[Test] = &[
    Test::new("an_attached_process_is_recorded_and_untouched", attach).quick().in_pairs(SHARES),
    Test::new("an_attached_process_may_end", attached_ends).in_pairs(SHARES),
    Test::new("attaching_while_threads_come_and_go_succeeds", attach_to_churn).in_pairs(SHARES),
    Test::new("threads_born_while_attaching_have_their_time", attach_to_generations).in_pairs(SHARES),
    Test::new("a_process_without_main_thread_is_attached_to", leaderless).in_pairs(SHARES),
    Test::new("a_process_with_a_tracer_is_an_error", traced_already),
    Test::new("an_untraceable_child_is_left_out_and_said", left_out).in_pairs(SHARES),
];

fn attached<'a>(test: &'a Context<'a>, pid: u32, output: &Path) -> Invocation<'a> {
    refused(test, test.nyquist(&["record", "-s", "-p", &pid.to_string(), "-o"]).path(output))
}

fn tracer(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

fn attach(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let output = test.path("attached.json.gz");
    let recorder = attached(test, target.pid(), &output).start()?;
    recorder.wait_until("the recorder to trace", || tracer(target.pid()) != 0)?;
    let before = least_cpu_time(target.pid());
    recorder.wait_until("both threads to run", || least_cpu_time(target.pid()) > before + 300_000_000)?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    expect_eq("the tracer of the process", tracer(target.pid()), 0)?;
    let before = cpu_time(target.pid());
    target.wait_until("the process to go on", || cpu_time(target.pid()) > before)?;
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    let profile = Profile::read(&output)?;
    for (name, function) in [("helper", "helper_loop"), ("endless", "main_loop")] {
        let weight: f64 = profile.threads_named(name).map(Thread::total).sum();
        expect_measured(
            weight > 20.0,
            format_args!("{name} has {weight} samples: {:?}", profile.thread_names()),
        )?;
        expect_measured(profile.total_share(function) > 0.1, format_args!("{function} is missing"))?;
    }
    let whole = whole_share(&profile, "main_loop") + whole_share(&profile, "helper_loop");
    expect_measured(whole > 0.97, format_args!("{whole:.3} of the stacks are whole: {:?}", profile.roots()))
}

fn attached_ends(test: &Context<'_>) -> Verdict {
    // The program ends after it is traced, however late tracing begins.
    let (ready, over) = (test.path("ready"), test.path("over"));
    let call = test.program(test.workload("endless")).args(&["1"]).path(&over);
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    let output = test.path("attached.json.gz");
    let recorder = attached(test, target.pid(), &output).start()?;
    recorder.wait_until_recording()?;
    let before = process_cpu_ms(target.pid())?;
    recorder
        .wait_until("some work", || process_cpu_ms(target.pid()).is_ok_and(|now| now > before + 300.0))?;
    fs::write(&over, "")?;
    expect_eq("the program's own status", target.wait()?.code(), 0)?;
    expect_eq("the recorder's status", recorder.wait()?.code(), 0)?;
    expect_measured(Profile::read(&output)?.total_share("main_loop") > 0.9, "main_loop is missing")?;
    // The id of a process that no longer exists.
    let child = test.program("true").start()?;
    let pid = child.pid();
    child.wait()?;
    let finished = attached(test, pid, &test.path("nothing.json.gz")).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("stderr", &finished.stderr, &format!("there is no process {pid}"))
}

/// Records with ptrace and without it, because the results must be equal.
fn leaderless(test: &Context<'_>) -> Verdict {
    for by_ptrace in [true, false] {
        let target = working(test, &["leaderless"])?;
        let (output, pid) = (test.fresh("attached.json.gz"), target.pid());
        let call = test.nyquist(&["record", "-s", "-p", &pid.to_string(), "-o"]).path(&output);
        let recorder = if by_ptrace { attached(test, pid, &output) } else { call }.start()?;
        recorder.wait_until_recording()?;
        let before = process_cpu_ms(pid)?;
        recorder.wait_until("the last thread to run", || {
            process_cpu_ms(pid).is_ok_and(|used| used > before + 300.0)
        })?;
        target.signal(libc::SIGKILL)?;
        target.wait()?;
        // When the last thread ends, the recording ends.
        recorder.wait()?.succeeded()?;
        let profile = Profile::read(&output)?;
        let weight: f64 = profile.threads_named("leaderless (survivor)").map(Thread::total).sum();
        let names = profile.thread_names();
        expect_measured(weight > 250.0, format_args!("{weight} samples of 300 ms: {names:?}"))?;
        let whole = whole_share(&profile, "survivor_loop");
        let roots = profile.roots();
        expect_measured(whole > 0.9, format_args!("{whole:.3} of the stacks are whole: {roots:?}"))?;
        let named = profile.threads.iter().all(|thread| thread.process == "leaderless");
        expect(named, format_args!("it has another name: {:?}", profile.thread_names()))?;
    }
    Ok(())
}

fn traced_already(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let first = attached(test, target.pid(), &test.path("first.json.gz")).start()?;
    first.wait_until("the recorder to trace", || tracer(target.pid()) != 0)?;
    let second = attached(test, target.pid(), &test.path("second.json.gz")).run()?;
    expect_eq("the status", second.code(), 1)?;
    let message = format!("process {} is traced already, by process {}", target.pid(), first.pid());
    expect_contains("stderr", &second.stderr, &message)?;
    first.signal(libc::SIGINT)?;
    first.wait()?.succeeded()?;
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

/// A thread that ends while the recorder attaches can no longer be traced. A thread that is created meanwhile
/// is traced already.
fn attach_to_churn(test: &Context<'_>) -> Verdict {
    for args in [&["churn", "1000000"][..], &["stops", "1000000", "2"]] {
        let target = working(test, args)?;
        for _ in 0..15 {
            let output = test.fresh("profile.json.gz");
            attached(test, target.pid(), &output).args(&["-d", "0.05"]).run()?.succeeded()?;
            expect_eq("the tracer of the process", tracer(target.pid()), 0)?;
        }
        let used = || process_cpu_ms(target.pid()).unwrap_or_default();
        let before = used();
        target.wait_until("the process to go on", || used() > before)?;
        end(target)?;
    }
    Ok(())
}

/// The notes of the threads: at which times each had used how many milliseconds of CPU time.
struct Diary(BTreeMap<String, Vec<(u64, f64)>>);

impl Diary {
    fn read(path: &Path) -> Self {
        let mut threads: BTreeMap<String, Vec<(u64, f64)>> = BTreeMap::new();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let mut args = line.split(' ');
            let name = args.next().unwrap_or_default().to_owned();
            // The last line may be incomplete.
            if let [Some(at), Some(cpu)] = [(); 2].map(|()| args.next()?.parse::<u64>().ok()) {
                threads.entry(name).or_default().push((at, cpu as f64 / 1e6));
            }
        }
        Self(threads)
    }

    fn lines(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The CPU time that a thread used in a recording. The lower bound covers the time that certainly belongs
    /// to the recording, and the upper bound the time that may belong to it.
    fn used(entries: &[(u64, f64)], surely: &Range<u64>, maybe: &Range<u64>) -> Range<f64> {
        let cpu = |entry: Option<&(u64, f64)>| entry.map(|(_, cpu)| *cpu);
        let inside: Vec<_> = entries.iter().filter(|(at, _)| surely.contains(at)).collect();
        let least = cpu(inside.last().copied()).unwrap_or(0.0) - cpu(inside.first().copied()).unwrap_or(0.0);
        let before = cpu(entries.iter().rfind(|(at, _)| *at < maybe.start)).unwrap_or(0.0);
        let after = cpu(entries.iter().find(|(at, _)| *at >= maybe.end).or(entries.last())).unwrap_or(0.0);
        least..after - before
    }
}

/// Threads are created before, while and after the recorder attaches to their process. Each of them that
/// works has its CPU time in the profile, and samples of its work.
fn attach_to_generations(test: &Context<'_>) -> Verdict {
    let path = test.path("diary");
    let target = working(test, &["generations", &path.display().to_string()])?;
    let (pid, mut checked) = (target.pid(), 0);
    for _ in 0..10 {
        let output = test.fresh("attached.json.gz");
        let attaching = monotonic_ns();
        let recorder = attached(test, pid, &output).start()?;
        recorder.wait_until_recording()?;
        let attached = monotonic_ns();
        let lines = Diary::read(&path).lines();
        // A line is written every millisecond.
        recorder.wait_until("some generations", || Diary::read(&path).lines() > lines + 250)?;
        let leaving = monotonic_ns();
        recorder.signal(libc::SIGINT)?;
        recorder.wait_until("the process to be let go", || tracer(pid) == 0)?;
        let left = monotonic_ns();
        recorder.wait()?.succeeded()?;
        let profile = Profile::read(&output)?;
        checked += expect_threads(&profile, &Diary::read(&path), &(attached..leaving), &(attaching..left))?;
    }
    end(target)?;
    expect_measured(checked > 30, format_args!("only {checked} threads have worked for long enough"))
}

/// Checks that each thread has its time, and has samples. Returns the number of threads.
fn expect_threads(
    profile: &Profile,
    diary: &Diary,
    surely: &Range<u64>,
    maybe: &Range<u64>,
) -> Result<usize, Stop> {
    /// The minimum work of a checked thread, in milliseconds.
    const MIN_WORK_MS: f64 = 10.0;
    /// The time in milliseconds between two lines of the diary, and after the last one.
    const SLACK: f64 = 2.5;
    let (mut count, mut all, mut sampled) = (0, 0.0, 0.0);
    for (name, entries) in &diary.0 {
        let used = Diary::used(entries, surely, maybe);
        if used.start < MIN_WORK_MS {
            continue;
        }
        // Threads that it creates have the same name, and end at once.
        let own = profile.threads_named(name).max_by(|one, other| one.total().total_cmp(&other.total()));
        let weight = own.map_or(0.0, Thread::total);
        let due = used.start * 0.95 - SLACK..used.end * 1.05 + SLACK;
        expect_measured(due.contains(&weight), format_args!("{name} has {weight} samples, not {due:?}"))?;
        let works = |stack: &[&Frame]| stack.iter().any(|frame| frame.function == "generation_work");
        let working = own.into_iter().flat_map(Thread::stacks).filter(|(stack, _)| works(stack));
        let working: f64 = working.map(|(_, weight)| weight).sum();
        expect_measured(working > 0.0, format_args!("{name} was not seen to work in {used:?} ms"))?;
        count += 1;
        all += weight;
        sampled += working;
    }
    let is_most = sampled >= 0.7 * all;
    expect_measured(
        is_most,
        format_args!("{sampled:.1} of {all:.1} samples of {count} threads are in their work"),
    )?;
    Ok(count)
}

/// One of two children has a tracer already.
fn left_out(test: &Context<'_>) -> Verdict {
    let programs = ["traced", "free"].map(|name| test.path(name));
    for program in &programs {
        fs::copy(test.workload("endless"), program)?;
    }
    let [traced, free] = programs.each_ref().map(|program| program.display().to_string());
    let shell = test.program("sh").args(&["-c", &format!("{traced} 1 & {free} 1 & wait")]).start()?;
    let child = |program: &Path| test.process_of(program);
    shell.wait_until("both children to run", || programs.iter().all(|program| child(program).is_some()))?;
    let [traced, free] = programs.each_ref().map(|program| child(program).unwrap_or_default());
    let first = attached(test, traced, &test.path("first.json.gz")).start()?;
    first.wait_until("the recorder to trace", || tracer(traced) != 0)?;
    let output = test.path("second.json.gz");
    let second = attached(test, shell.pid(), &output).start()?;
    second.wait_until_recording()?;
    let before = process_cpu_ms(free)?;
    second.wait_until("the other to work", || process_cpu_ms(free).is_ok_and(|now| now > before + 300.0))?;
    second.signal(libc::SIGINT)?;
    let stderr = second.wait()?.succeeded()?.stderr;
    let reason = format!("is not recorded: process {traced} is traced already, by process {}", first.pid());
    expect_contains("stderr", &stderr, &reason)?;
    first.signal(libc::SIGINT)?;
    first.wait()?.succeeded()?;
    for pid in [traced, free] {
        crate::sys::signal_process(pid, libc::SIGKILL)?;
    }
    shell.wait()?;
    let profile = Profile::read(&output)?;
    let of = |pid: u32| profile.threads.iter().filter(move |thread| thread.pid == pid.to_string());
    expect_eq("threads of the process that is left out", of(traced).count(), 0)?;
    let weight: f64 = of(free).map(Thread::total).sum();
    expect_measured(weight > 250.0, format_args!("the other child has {weight} samples of 300 ms"))
}
