//! Time off the CPU: what of it becomes samples and markers, and how it adds up.

use super::*;
use crate::event::{WaitReason, Waiting};

const WAITS: Shape = Shape { waits: true, reuse_threads: false, ..REUSE };

/// A thread of process 1 was seen to wait at an address, so long after the look before.
fn seen(tid: u32, address: u64, reason: WaitReason, looked_before_ms: u64) -> EventKind {
    let EventKind::Sample(sample) = sample(1, tid, None, &[address]) else { unreachable!() };
    let looked_before_ns = looked_before_ms * MS;
    EventKind::Waiting(Box::new(Waiting {
        sample,
        reason,
        looked_before_ns,
        object: Some("it".into()),
        holder: Some(Tid(1)),
    }))
}

fn on_cpu(tid: u32) -> EventKind {
    EventKind::SwitchIn { tid: Tid(tid) }
}

/// The profile of some events at times in ms, after those that start a program.
fn profile_of(events: impl IntoIterator<Item = (u64, EventKind)>) -> Profile {
    let mut converter = converter(true).shaped(WAITS);
    converter.push(at(0, name(1, 1, "app", true)));
    for (time, event) in events {
        converter.push(at(time, event));
    }
    converter.finish().profile
}

/// Each sample of waiting as "thread: stack weight".
fn waits(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for thread in profile.threads() {
        for sample in thread.samples.iter().filter(|sample| sample.off_cpu) {
            let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
            let mut names: Vec<_> = frames.map(|frame| profile.func_name(frame.func)).collect();
            names.reverse();
            lines.push(format!("{}: {} {}", thread.tid, names.join(";"), sample.weight));
        }
    }
    lines
}

#[test]
fn a_wait_has_its_stack_and_reason() {
    let profile = profile_of([
        (2, descheduled(1, false)),
        (5, seen(1, 0x20, WaitReason::Lock, 3)),
        (12, on_cpu(1)),
        (13, sample(1, 1, None, &[0x10])),
    ]);
    assert_eq!(waits(&profile), ["1: 0x20;[waiting: lock] 10"]);
    assert_eq!(marker_lines(&profile), ["1: Wait: lock lock it app (1) 2-12"]);
    let marker = &profile.threads()[0].markers[0];
    assert_eq!(marker.stack, profile.threads()[0].samples.first().unwrap().stack);
}

#[test]
fn a_seen_short_wait_stands_for_unseen_ones() {
    let mut events = Vec::new();
    for round in 0..6 {
        events.push((10 * round, descheduled(1, false)));
        if round == 4 {
            events.push((10 * round + 1, seen(1, 0x20, WaitReason::File, 30)));
        }
        events.push((10 * round + 2, on_cpu(1)));
    }
    let profile = profile_of(events);
    assert_eq!(waits(&profile), ["1: 0x20;[waiting: file] 10", "1: [waiting: not seen] 2"]);
}

#[test]
fn a_long_wait_stands_for_itself_alone() {
    let profile = profile_of([
        (2, descheduled(1, false)),
        (4, on_cpu(1)),
        (5, descheduled(1, false)),
        (7, seen(1, 0x20, WaitReason::Sleep, 3)),
        (25, on_cpu(1)),
    ]);
    assert_eq!(waits(&profile), ["1: 0x20;[waiting: sleep] 20", "1: [waiting: not seen] 2"]);
}

#[test]
fn a_preempted_or_new_thread_waits_for_a_cpu() {
    let profile =
        profile_of([(2, fork(1, 2, 1)), (5, on_cpu(2)), (6, descheduled(2, true)), (10, on_cpu(2))]);
    assert_eq!(waits(&profile), ["2: [waiting for a CPU] 3", "2: [waiting for a CPU] 4"]);
}

#[test]
fn a_thread_that_never_ran_waits_from_its_start() {
    let profile = profile_of([(3, name(1, 2, "idle", false)), (9, seen(2, 0x20, WaitReason::Events, 5))]);
    let profile_end = profile_of([
        (3, name(1, 2, "idle", false)),
        (9, seen(2, 0x20, WaitReason::Events, 5)),
        (15, sample(1, 1, None, &[0x10])),
    ]);
    assert_eq!(waits(&profile), ["2: 0x20;[waiting: events] 6"]);
    assert_eq!(waits(&profile_end), ["2: 0x20;[waiting: events] 12"]);
}

#[test]
fn what_runs_or_has_ended_does_not_wait() {
    let profile = profile_of([
        (1, sample(1, 1, None, &[0x10])),
        (2, seen(1, 0x20, WaitReason::Lock, 1)),
        (3, sample(1, 1, None, &[0x10])),
        (4, fork(1, 2, 1)),
        (4, on_cpu(2)),
        (5, exit(1, 2)),
        (6, seen(2, 0x20, WaitReason::Page, 1)),
        (6, descheduled(2, false)),
        (20, sample(1, 1, None, &[0x10])),
    ]);
    assert_eq!(waits(&profile), [""; 0]);
}

/// Running and waiting, a thread's time is what it lived.
#[test]
fn all_time_of_a_thread_adds_up() {
    let mut events = vec![(0, fork(1, 2, 1)), (2, on_cpu(2))];
    for round in 0..50 {
        let start = 2 + 7 * round;
        events.push((start + 3, sample(1, 2, Some((round + 1) * 3), &[0x10])));
        events.push((start + 3, descheduled(2, round % 3 == 0)));
        if round % 4 == 0 {
            events.push((start + 4, seen(2, 0x20, WaitReason::Pipe, 20)));
        }
        events.push((start + 7, on_cpu(2)));
    }
    events.push((2 + 350, exit(1, 2)));
    let profile = profile_of(events);
    let thread = profile.threads().iter().find(|thread| thread.tid == "2").unwrap();
    let weight: u32 = thread.samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(weight, 352);
}

#[test]
fn without_being_asked_for_waits_are_no_samples() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[0x10])));
    converter.push(at(2, descheduled(1, false)));
    converter.push(at(9, on_cpu(1)));
    assert_eq!(waits(&converter.finish().profile), [""; 0]);
}
