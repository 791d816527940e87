//! Samples of threads that have ended and released their numbers, but still run to their last instruction in
//! the kernel.

use super::*;

#[test]
fn a_released_tid_is_the_last_that_ended() {
    let mut converter = converter(true);
    converter.push(exec(1, 7, "seven"));
    converter.push(at(2, sample(u32::MAX, u32::MAX, None, &[1])));
    converter.push(at(3, EventKind::Exit { pid: Pid(7), tid: Tid(7) }));
    converter.push(at(4, sample(u32::MAX, u32::MAX, None, &[2])));
    let profile = converter.finish().profile;
    assert_eq!(folded(&profile), ["0x2 1"]);
    assert_eq!(profile.processes()[0].name, "seven");
}

#[test]
fn a_released_tid_is_no_thread_of_its_own() {
    let mut converter = converter(true);
    converter.push(exec(1, 7, "seven"));
    converter.push(at(2, fork(7, 8, 7)));
    converter.push(at(3, EventKind::Exit { pid: Pid(7), tid: Tid(8) }));
    converter.push(at(4, sample(7, u32::MAX, None, &[2])));
    let profile = converter.finish().profile;
    let tids: Vec<_> = profile.threads().iter().map(|thread| thread.tid.clone()).collect();
    assert_eq!((folded(&profile), tids), (vec!["0x2 1".to_owned()], vec!["8".to_owned()]));
}

#[test]
fn a_released_tid_is_of_its_process() {
    let whose = |events: Vec<Event>| -> Vec<(String, String)> {
        let mut converter = converter(true);
        converter.push(exec(1, 7, "seven"));
        converter.push(exec(1, 9, "nine"));
        for event in events {
            converter.push(event);
        }
        let profile = converter.finish().profile;
        let rows = profile.threads().iter();
        rows.map(|row| (profile.processes()[row.process.index()].pid.clone(), row.tid.clone())).collect()
    };
    let ended = |cpu, pid, tid| on(cpu, at(3, EventKind::Exit { pid: Pid(pid), tid: Tid(tid) }));
    let released = |cpu| on(cpu, at(4, sample(7, u32::MAX, None, &[2])));
    let row = |tid: &str| [("7".to_owned(), tid.to_owned())];
    // The thread has left the CPU on which it ended, and a thread of another process has ended on the current
    // CPU.
    assert_eq!(whose(vec![ended(1, 7, 8), ended(0, 9, 9), released(0)]), row("8"));
    // The record of its end was lost.
    assert_eq!(whose(vec![ended(0, 9, 9), released(0)]), row("7"));
}
