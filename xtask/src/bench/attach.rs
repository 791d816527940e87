//! How long it takes to attach to a running program, and for how long the program's threads are stopped
//! meanwhile.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::measure::Bench;
use super::recorder::Recorder;
use super::spread::cell;
use crate::live::harness::paranoid::Paranoid;
use crate::sys;

const RATE: u32 = 1000;
/// Attaching counts as complete when nothing has changed for this time.
const SETTLED: Duration = Duration::from_millis(700);

/// How many threads are checked in one pass, one after the other. Checking hundreds in each pass would use a
/// whole CPU.
const CHECKED_AT_ONCE: usize = 16;

/// The cost of attaching, in milliseconds.
struct Attached {
    /// From the recorder's start until its last event was open, or the last thread was traced.
    ready: f64,
    /// For how long its threads were stopped during that time, summed over all threads.
    stopped: f64,
}

/// Measures and prints the table.
pub(crate) fn measure(rounds: u32, bench: &Bench<'_>, recorders: &[Recorder]) {
    println!("\n## Attaching\n");
    println!(
        "| recorder | mode | threads | attached after, ms | its threads stopped meanwhile, ms together |"
    );
    println!("|---|---|---|---|---|");
    let recorders: Vec<&Recorder> = recorders.iter().filter(|recorder| !recorder.presymbolicates).collect();
    for (args, threads) in [(&["endless", "2"][..], 2), (&["many_threads", "1000000", "200"], 201)] {
        let mut rows: Vec<Vec<Result<Attached>>> = recorders.iter().map(|_| Vec::new()).collect();
        for round in 1..=rounds {
            for (recorder, row) in recorders.iter().zip(&mut rows) {
                eprintln!("attaching to {threads} threads, round {round}: {}", recorder.name);
                row.push(attach(bench, recorder, args, threads));
            }
        }
        for (recorder, row) in recorders.iter().zip(rows) {
            let cells = match row.into_iter().collect::<Result<Vec<_>>>() {
                Ok(row) => {
                    let ready = cell(0, row.iter().map(|attached| attached.ready));
                    format!("{ready} | {}", cell(1, row.iter().map(|attached| attached.stopped)))
                }
                Err(error) => format!("{error:#} | "),
            };
            println!("| {} | {} | {threads} | {cells} |", recorder.name, recorder.mode);
        }
    }
}

/// A program that is ended when it is no longer needed.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attach(bench: &Bench<'_>, recorder: &Recorder, args: &[&str], threads: usize) -> Result<Attached> {
    recorder.program.as_ref().context("not on this machine")?;
    let mut target = Command::new(bench.measured.with_file_name(args[0]));
    let target = KillOnDrop(target.args(&args[1..]).stdout(Stdio::null()).spawn()?);
    let pid = target.0.id();
    while fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count) < threads {
        sleep(Duration::from_millis(5));
    }
    let output = bench.folder.join(format!("attached{}", recorder.extension));
    let args = recorder.attaching(RATE, &output, pid);
    let held = recorder.paranoid.map(Paranoid::hold).transpose()?;
    let began = Instant::now();
    let log = fs::File::create(bench.folder.join("errors.log"))?;
    let mut command = Command::new(&args[0]);
    command.args(&args[1..]).current_dir(bench.folder).stdin(Stdio::null()).stdout(Stdio::null());
    let mut recording = KillOnDrop(command.stderr(log).spawn()?);
    let attached = watch(recording.0.id(), pid, began);
    drop(held);
    sys::signal_process(recording.0.id(), libc::SIGINT)?;
    let status = recording.0.wait()?;
    let attached = attached?;
    // perf ends by the signal that ended its recording.
    ensure!(status.success() || status.signal() == Some(libc::SIGINT), "ended with {status}");
    Ok(attached)
}

/// Watches both processes until the recorder has opened all events and traced all threads.
fn watch(recorder: u32, target: u32, began: Instant) -> Result<Attached> {
    let (mut had, mut changed) = (0, Instant::now());
    let mut attached = Attached { ready: 0.0, stopped: 0.0 };
    let (mut stopped, mut last) = (0.0, 0.0);
    let mut tasks = Tasks::of(target)?;
    loop {
        let now = began.elapsed().as_secs_f64() * 1e3;
        stopped += (now - last) * tasks.stopped();
        last = now;
        let has = events(recorder) + traced(target);
        if has != had {
            (had, changed) = (has, Instant::now());
            attached = Attached { ready: now, stopped };
        }
        if changed.elapsed() > SETTLED && has > 0 {
            return Ok(attached);
        }
        ensure!(began.elapsed() < Duration::from_mins(1), "not attached after a minute");
        sleep(Duration::from_micros(500));
    }
}

/// How many events a recorder has open.
pub(super) fn events(recorder: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{recorder}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("[perf_event]")).count()
}

/// How many threads of a process are traced. It is 0 while the main thread is not traced.
fn traced(pid: u32) -> usize {
    let is_traced = |status: &str| !status.contains("TracerPid:\t0\n");
    let read = |path: std::path::PathBuf| fs::read_to_string(path.join("status")).unwrap_or_default();
    if !is_traced(&read(format!("/proc/{pid}").into())) {
        return 0;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter(|task| is_traced(&read(task.path()))).count()
}

/// The threads of a process, as open files that say whether each thread is stopped.
struct Tasks {
    stats: Vec<File>,
    /// The thread that is checked next.
    next: usize,
}

impl Tasks {
    fn of(pid: u32) -> Result<Self> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
        let stats = tasks.map(|task| Ok(File::open(task?.path().join("stat"))?)).collect::<Result<_>>()?;
        Ok(Self { stats, next: 0 })
    }

    /// How many threads are stopped, estimated from the sampled ones.
    fn stopped(&mut self) -> f64 {
        let (all, checked) = (self.stats.len(), self.stats.len().min(CHECKED_AT_ONCE));
        let turn = (0..checked).map(|at| &self.stats[(self.next + at) % all]);
        let stopped = turn.filter(|stat| is_stopped(stat)).count();
        self.next += checked;
        (stopped * all) as f64 / checked.max(1) as f64
    }
}

fn is_stopped(stat: &File) -> bool {
    let mut text = [0; 64];
    // A thread that has ended is not stopped.
    let length = stat.read_at(&mut text, 0).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..length]);
    text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_threads_are_seen_by_looking_at_some() {
        let asleep = || KillOnDrop(Command::new("sleep").arg("1000").spawn().unwrap());
        let (stopped, running) = (asleep(), asleep());
        sys::signal_process(stopped.0.id(), libc::SIGSTOP).unwrap();
        let mut stats: Vec<File> = Vec::new();
        for at in 0..2 * CHECKED_AT_ONCE {
            // A quarter of all threads are stopped: half of those that the first pass checks.
            let process = if at < CHECKED_AT_ONCE / 2 { &stopped } else { &running };
            stats.push(File::open(format!("/proc/{}/stat", process.0.id())).unwrap());
        }
        while !is_stopped(&stats[0]) {
            sleep(Duration::from_millis(1));
        }
        let mut tasks = Tasks { stats, next: 0 };
        let looks = [(); 3].map(|()| tasks.stopped() as usize);
        assert_eq!(looks, [CHECKED_AT_ONCE, 0, CHECKED_AT_ONCE]);
        let few = [&stopped, &running].map(|process| Tasks::of(process.0.id()).unwrap().stopped() as usize);
        assert_eq!(few, [1, 0]);
    }
}
