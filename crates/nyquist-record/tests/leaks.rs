//! A recording leaves nothing behind in its own process. This is a single test, because it checks the whole
//! process.

#![cfg(target_os = "linux")]

use std::fs;

use nyquist_convert::event::Event;
use nyquist_record::linux::launch::{ExitStatus, prepare};
use nyquist_record::linux::perf::{OpenError, Perf};
use nyquist_record::linux::{Command, Options, RecordingTarget};

fn command(script: &str) -> Command {
    Command::from_words(["sh", "-c", script].map(Into::into)).unwrap()
}

fn entries(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// The soft limit of open files.
fn open_files_limit() -> String {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_ascii_whitespace().nth(3).unwrap().to_owned()
}

/// Whether the machine allows recording at all.
fn record_once() -> bool {
    let child = prepare(&command("true")).unwrap();
    let perf = match Perf::open(RecordingTarget::Child(child.pid()), &Options::default()) {
        Ok(perf) => perf,
        Err(error @ OpenError::Refused { .. }) => {
            eprintln!("skipped: {error}");
            return false;
        }
        Err(error) => panic!("{error}"),
    };
    let mut recording = perf.record().unwrap();
    let running = child.start().unwrap();
    let mut events: Vec<Event> = Vec::new();
    (&mut recording).for_each(|chunk| assert_eq!(chunk.decode(&mut events), 0));
    recording.finish();
    assert_eq!(running.wait().unwrap().status, ExitStatus::Code(0));
    true
}

#[test]
fn descriptors_threads_memory_and_limits_stay() {
    let limit = open_files_limit();
    // The first recording creates what stays, such as the standard library's own descriptors.
    if !record_once() {
        return;
    }
    let rings = || fs::read_to_string("/proc/self/maps").unwrap().matches("[perf_event]").count();
    let state = || (entries("/proc/self/fd"), entries("/proc/self/task"), rings());
    let before = state();
    for _ in 0..5 {
        record_once();
    }
    // Dropping a running recording is another way to end it.
    let child = prepare(&command("exec sleep 1000")).unwrap();
    let perf = Perf::open(RecordingTarget::Child(child.pid()), &Options::default()).unwrap();
    let recording = perf.record().unwrap();
    let running = child.start().unwrap();
    drop(recording);
    running.signaller().send(9).unwrap();
    running.wait().unwrap();
    assert_eq!(state(), before);

    // The recorder raises its own limit of open files, which must not affect the command.
    let running = prepare(&command(&format!("[ $(ulimit -Sn) = {limit} ]"))).unwrap().start().unwrap();
    assert_eq!(running.wait().unwrap().status, ExitStatus::Code(0));
}
