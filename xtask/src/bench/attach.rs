//! How long it takes to attach to a running program, and for how long the program is stopped meanwhile.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::measure::Bench;
use super::recorder::Recorder;
use super::spread::cell;
use crate::live::paranoid::Paranoid;
use crate::sys;

const RATE: u32 = 1000;
/// How long nothing may change until everything counts as open.
const SETTLED: Duration = Duration::from_millis(700);

/// What attaching took, in milliseconds.
struct Attached {
    /// From the recorder's start until its last event was open, or the last thread traced.
    ready: f64,
    /// How much of that the program was seen stopped.
    stopped: f64,
}

/// Measures and prints the table.
pub(crate) fn measure(rounds: u32, bench: &Bench<'_>, recorders: &[Recorder]) {
    println!("\n## Attaching\n");
    println!("| recorder | mode | threads | attached after, ms | stopped meanwhile, ms |");
    println!("|---|---|---|---|---|");
    let recorders: Vec<&Recorder> = recorders.iter().filter(|recorder| !recorder.presymbolicates).collect();
    for (words, threads) in [(&["endless", "2"][..], 2), (&["many_threads", "1000000", "200"], 201)] {
        let mut rows: Vec<Vec<Result<Attached>>> = recorders.iter().map(|_| Vec::new()).collect();
        for round in 1..=rounds {
            for (recorder, row) in recorders.iter().zip(&mut rows) {
                eprintln!("attaching to {threads} threads, round {round}: {}", recorder.name);
                row.push(attach(bench, recorder, words, threads));
            }
        }
        for (recorder, row) in recorders.iter().zip(rows) {
            let cells = match row.into_iter().collect::<Result<Vec<_>>>() {
                Ok(row) => {
                    let ready = cell(0, row.iter().map(|attached| attached.ready));
                    format!("{ready} | {}", cell(0, row.iter().map(|attached| attached.stopped)))
                }
                Err(error) => format!("{error:#} | "),
            };
            println!("| {} | {} | {threads} | {cells} |", recorder.name, recorder.mode);
        }
    }
}

/// A program that is ended when it is no longer needed.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attach(bench: &Bench<'_>, recorder: &Recorder, words: &[&str], threads: usize) -> Result<Attached> {
    recorder.program.as_ref().context("not on this machine")?;
    let mut target = Command::new(bench.measured.with_file_name(words[0]));
    let target = Ended(target.args(&words[1..]).stdout(Stdio::null()).spawn()?);
    let pid = target.0.id();
    while fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count) < threads {
        sleep(Duration::from_millis(5));
    }
    let output = bench.folder.join(format!("attached{}", recorder.extension));
    let words = recorder.attaching(RATE, &output, pid);
    let held = recorder.paranoid.map(Paranoid::hold).transpose()?;
    let began = Instant::now();
    let log = fs::File::create(bench.folder.join("errors.log"))?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(bench.folder).stdin(Stdio::null()).stdout(Stdio::null());
    let mut recording = Ended(command.stderr(log).spawn()?);
    let attached = watch(recording.0.id(), pid, began);
    drop(held);
    sys::signal_process(recording.0.id(), libc::SIGINT)?;
    let status = recording.0.wait()?;
    let attached = attached?;
    // perf ends by the signal that ended its recording.
    ensure!(status.success() || status.signal() == Some(libc::SIGINT), "ended with {status}");
    Ok(attached)
}

/// Looks at both until the recorder has got everything that it wants.
fn watch(recorder: u32, target: u32, began: Instant) -> Result<Attached> {
    let (mut had, mut changed) = (0, Instant::now());
    let mut attached = Attached { ready: 0.0, stopped: 0.0 };
    let (mut stopped, mut last) = (0.0, 0.0);
    loop {
        let now = began.elapsed().as_secs_f64() * 1e3;
        if is_stopped(target) {
            stopped += now - last;
        }
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
fn events(recorder: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{recorder}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("[perf_event]")).count()
}

/// How many threads of a process are traced; looked at where the main thread is.
fn traced(pid: u32) -> usize {
    let is_traced = |status: &str| !status.contains("TracerPid:\t0\n");
    let read = |path: std::path::PathBuf| fs::read_to_string(path.join("status")).unwrap_or_default();
    if !is_traced(&read(format!("/proc/{pid}").into())) {
        return 0;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter(|task| is_traced(&read(task.path()))).count()
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}
