//! Tests of time off the CPU: its samples, its markers and its sums.

use super::*;
use crate::event::{Registers, WaitReason, Waiting, Wakeup};
use bytes::Bytes;
use nyquist_symbols::KernelSymbols;

const WAITS: Shape = Shape { waits: true, reuse_threads: false, ..REUSE };

/// A thread of process 1 was seen waiting at an address, this long after the previous look.
fn seen(tid: u32, address: u64, reason: WaitReason, checked_before_ms: u64) -> EventKind {
    let EventKind::Sample(sample) = sample(1, tid, None, &[address]) else { unreachable!() };
    let checked_before_ns = checked_before_ms * MS;
    EventKind::Waiting(Box::new(Waiting {
        sample,
        reason: Some(reason),
        checked_before_ns,
        object: Some("it".into()),
        holder: Some(Tid(1)),
    }))
}

fn on_cpu(tid: u32) -> EventKind {
    EventKind::SwitchIn { tid: Tid(tid) }
}

/// The address at which the kernel of these tests waits for a futex.
const FUTEX_WAIT: u64 = 0xffff_ffff_8100_0100;

const KALLSYMS: &str = "ffffffff81000000 T _stext\nffffffff81000100 T futex_wait\nffffffff81000180 T do_futex\nffffffff81000200 T _etext\n";

/// A thread of process 1 is about to wait for a futex, at an address of its own code.
fn leaves(tid: u32, address: u64) -> EventKind {
    let EventKind::Sample(sample) = sample(1, tid, None, &[address]) else { unreachable!() };
    EventKind::SwitchStack(Sample { in_kernel: true, kernel_stack: vec![Avma(FUTEX_WAIT + 0x10)], ..sample })
}

/// A thread of process 1 makes another one ready to run.
fn wakes(tid: u32, address: u64, woken: u32, in_interrupt: bool) -> EventKind {
    let EventKind::Sample(sample) = sample(1, tid, None, &[address]) else { unreachable!() };
    EventKind::Wakeup(Box::new(Wakeup { sample, woken: Tid(woken), in_interrupt }))
}

/// The profile of some events at times in ms, after those that start a program.
fn profile_of(events: impl IntoIterator<Item = (u64, EventKind)>) -> Profile {
    let symbols = KernelSymbols::parse(KALLSYMS.as_bytes(), std::io::empty(), &[]).unwrap();
    let mut converter = Converter::new(Options { shape: WAITS, kernel_symbols: Some(symbols), ..options() });
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
    assert_eq!(marker_lines(&profile), ["1: Wait: lock lock it app (1) - - 2-12"]);
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
    let expected = [
        "1: Wait: file file it app (1) - Number(8.0) 40-42",
        "1: Wait: not seen not seen - - - Number(2.0) 52-52",
    ];
    assert_eq!(marker_lines(&profile), expected);
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

/// Its kernel stack shows the reason, without a look.
#[test]
fn a_switch_has_its_stack_and_reason() {
    let profile = profile_of([(2, leaves(1, 0x20)), (2, descheduled(1, false)), (12, on_cpu(1))]);
    assert_eq!(waits(&profile), ["1: 0x20;0xffffffff81000110;[waiting: futex] 10"]);
    assert_eq!(marker_lines(&profile), ["1: Wait: futex futex - - - - 2-12"]);
}

/// The address of the futex is the first argument of its call. That of another call, which has the same functions, is
/// not.
#[test]
fn a_switch_names_the_futex() {
    const DO_FUTEX: u64 = 0xffff_ffff_8100_0190;
    const RDI: usize = 5;
    for (call, expected) in [(Some(DO_FUTEX), "0x7f00"), (None, "-")] {
        let mut values = [0; 17];
        values[RDI] = 0x7f00;
        let registers = Box::new(Registers::X86_64(values));
        let EventKind::SwitchStack(mut sample) = leaves(1, 0x20) else { unreachable!() };
        sample.user = UserStack::Copied { registers, stack: Bytes::new(), limited: false };
        sample.kernel_stack.extend(call.map(Avma));
        let leaves = EventKind::SwitchStack(sample);
        let profile = profile_of([(2, leaves), (2, descheduled(1, false)), (12, on_cpu(1))]);
        assert_eq!(marker_lines(&profile), [format!("1: Wait: futex futex {expected} - - - 2-12")]);
    }
}

/// The look reports the object and more of the program's stack. The switch reports the kernel's part.
#[test]
fn a_look_adds_to_what_a_switch_has() {
    let profile = profile_of([
        (2, leaves(1, 0x20)),
        (2, descheduled(1, false)),
        (5, seen(1, 0x30, WaitReason::Lock, 3)),
        (12, on_cpu(1)),
    ]);
    assert_eq!(waits(&profile), ["1: 0x30;0xffffffff81000110;[waiting: lock] 10"]);
    assert_eq!(marker_lines(&profile), ["1: Wait: lock lock it app (1) - - 2-12"]);
}

/// A preempted thread waits for nothing, and the stack of a switch is not that of a later one.
#[test]
fn a_stack_is_of_the_switch_that_follows() {
    let profile = profile_of([
        (2, leaves(1, 0x20)),
        (2, descheduled(1, true)),
        (4, on_cpu(1)),
        (5, descheduled(1, false)),
        (7, on_cpu(1)),
        (8, leaves(1, 0x20)),
        (10, descheduled(1, false)),
        (11, on_cpu(1)),
    ]);
    assert_eq!(waits(&profile), ["1: [waiting for a CPU] 2", "1: [waiting: not seen] 3"]);
}

/// One of four switches of two kinds is recorded. A recorded stack stands for the time of its kind.
#[test]
fn a_recorded_switch_stands_for_others() {
    let mut events = Vec::new();
    for round in 0..400 {
        let (long, start) = (round % 2 == 0, 4 * round);
        if round % 4 == 0 || round % 8 == 3 {
            events.push((start, leaves(1, if long { 0x20 } else { 0x30 })));
        }
        events.push((start, descheduled(1, false)));
        events.push((start + if long { 3 } else { 1 }, on_cpu(1)));
    }
    let profile = profile_of(events);
    let mut sums = std::collections::BTreeMap::<String, u32>::new();
    for line in waits(&profile) {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *sums.entry(stack.to_owned()).or_default() += weight.parse::<u32>().unwrap();
    }
    let of = |address: &str| sums[&format!("1: {address};0xffffffff81000110;[waiting: futex]")];
    assert_eq!(sums.values().sum::<u32>(), 800);
    assert!((540..=660).contains(&of("0x20")), "{sums:?}");
    assert!((140..=260).contains(&of("0x30")), "{sums:?}");
}

#[test]
fn a_long_wait_names_the_thread_that_ended_it() {
    let profile = profile_of([
        (1, fork(1, 2, 1)),
        (1, on_cpu(2)),
        (2, leaves(2, 0x20)),
        (2, descheduled(2, false)),
        (11, wakes(1, 0x40, 2, false)),
        (12, on_cpu(2)),
        (13, leaves(2, 0x20)),
        (13, descheduled(2, false)),
        (20, wakes(1, 0x50, 2, true)),
        (21, on_cpu(2)),
    ]);
    let lines = marker_lines(&profile);
    assert_eq!(
        lines,
        [
            "2: Wait: futex futex - - app (1) - 2-12",
            "2: Wait: futex futex - - an interrupt - 13-21",
            "1: Wake app (2) Number(10.0) 11",
        ]
    );
    let frame = |stack| profile.func_name(profile.stack_frames(stack).next().unwrap().func);
    assert_eq!(profile.threads()[1].markers[0].stack.map(frame), Some("0x40"));
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

/// The sum of running and waiting is the thread's lifetime.
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
    let weight: u64 = thread.samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(weight, 352);
}

/// With ptrace, threads are sampled by the wall clock.
#[test]
fn a_look_by_the_wall_clock_has_its_reason() {
    let waiting_for = |reason| {
        let EventKind::Sample(sample) = sample(1, 1, Some(0), &[0x20]) else { unreachable!() };
        EventKind::Sample(Sample { state: SampleState::Waiting { waited_ns: 6 * MS, reason }, ..sample })
    };
    let profile = profile_of([(7, waiting_for(Some(WaitReason::Pipe))), (14, waiting_for(None))]);
    assert_eq!(waits(&profile), ["1: 0x20;[waiting: pipe] 6", "1: 0x20 6"]);
}

/// Its clock also runs during the switches, and is known only when the thread ends.
#[test]
fn a_thread_without_samples_adds_up() {
    let mut converter = Converter::new(Options { kernel_permitted: false, shape: WAITS, ..options() });
    converter.push(at(0, name(1, 1, "app", true)));
    converter.push(at(0, fork(1, 2, 1)));
    for round in 0..50 {
        converter.push(at(10 * round, on_cpu(2)));
        converter.push(at(10 * round + 3, leaves(2, 0x20)));
        converter.push(at(10 * round + 3, descheduled(2, false)));
    }
    converter.push(at(500, on_cpu(2)));
    let cpu_time_ns = 175 * MS;
    converter.push(at(500, EventKind::Total { pid: Pid(1), tid: Tid(2), cpu_time_ns }));
    converter.push(at(500, exit(1, 2)));
    let profile = converter.finish().profile;
    let thread = profile.threads().iter().find(|thread| thread.tid == "2").unwrap();
    let weight = |off_cpu| -> u64 {
        let samples = thread.samples.iter().filter(|sample| sample.off_cpu == off_cpu);
        samples.map(|sample| sample.weight).sum()
    };
    assert_eq!([true, false].map(weight), [350, 150]);
}

#[test]
fn waits_are_no_samples_unless_requested() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[0x10])));
    converter.push(at(2, descheduled(1, false)));
    converter.push(at(9, on_cpu(1)));
    assert_eq!(waits(&converter.finish().profile), [""; 0]);
}

#[test]
fn a_wait_that_lasts_counts_until_now() {
    let mut converter = shaped(WAITS);
    converter.push(at(0, name(1, 1, "app", true)));
    converter.push(at(2, descheduled(1, false)));
    converter.push(at(5, seen(1, 0x20, WaitReason::Lock, 3)));
    converter.advance(Timestamp(6 * MS));
    assert_eq!(waits(&converter.snapshot()), [""; 0]);
    let mut found = Vec::new();
    for until in [10, 10, 15] {
        converter.count_lasting_waits(Timestamp(until * MS));
        found.push(waits(&converter.snapshot()));
    }
    let first = "1: 0x20;[waiting: lock] 8";
    assert_eq!(found, [vec![first], vec![first], vec![first, "1: 0x20;[waiting: lock] 5"]]);
    // Counting the lasting waits does not change the sum.
    converter.push(at(22, on_cpu(1)));
    let weights: u64 =
        converter.finish().profile.threads()[0].samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(weights, 20);
}

#[test]
fn a_wait_that_may_be_seen_is_not_counted_yet() {
    let mut converter = shaped(WAITS);
    converter.push(at(0, name(1, 1, "app", true)));
    converter.push(at(2, descheduled(1, false)));
    converter.advance(Timestamp(3 * MS));
    converter.count_lasting_waits(Timestamp(10 * MS));
    converter.push(at(11, seen(1, 0x20, WaitReason::File, 3)));
    converter.advance(Timestamp(12 * MS));
    converter.count_lasting_waits(Timestamp(12 * MS));
    assert_eq!(waits(&converter.snapshot()), ["1: 0x20;[waiting: file] 10"]);
    // A wait that no look sees still counts as a wait.
    converter.push(at(13, on_cpu(1)));
    converter.push(at(20, descheduled(1, false)));
    converter.advance(Timestamp(21 * MS));
    converter.count_lasting_waits(Timestamp(2520 * MS));
    let all = waits(&converter.snapshot());
    assert_eq!(all.last().map(String::as_str), Some("1: [waiting: not seen] 2500"));
}

#[test]
fn a_wait_goes_on_when_the_past_is_forgotten() {
    let mut converter = shaped(WAITS);
    converter.push(at(0, name(1, 1, "app", true)));
    converter.push(at(2, descheduled(1, false)));
    converter.push(at(5, seen(1, 0x20, WaitReason::Lock, 3)));
    converter.advance(Timestamp(6 * MS));
    converter.evict(Timestamp(8 * MS));
    assert_eq!(waits(&converter.snapshot()), [""; 0]);
    converter.count_lasting_waits(Timestamp(15 * MS));
    assert_eq!(waits(&converter.snapshot()), ["1: [waiting: lock] 7"]);
}

fn leave(pid: u32, stack: &[u64]) -> EventKind {
    let EventKind::Sample(sample) = sample(pid, pid, None, stack) else { unreachable!() };
    EventKind::SwitchOut(sample)
}

#[test]
fn waiting_is_apart_from_cpu_time() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[0x10])));
    converter.push(at(2, leave(1, &[0x20])));
    converter.push(at(7, EventKind::SwitchIn { tid: Tid(1) }));
    converter.push(at(8, leave(1, &[0x30])));
    converter.push(at(10, sample(1, 1, None, &[0x10])));
    converter.push(at(11, leave(2, &[0x40])));
    converter.push(at(15, sample(1, 1, None, &[0x10])));
    let profile = converter.finish().profile;
    assert_eq!(folded(&profile), ["0x10 1", "0x20 5", "0x30 2", "0x10 1", "0x10 1", "0x40 4"]);
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let waits: Vec<_> = samples.map(|sample| (sample.off_cpu, sample.time / MS)).collect();
    assert_eq!(waits, [(false, 1), (true, 7), (true, 10), (false, 10), (false, 15), (true, 15)]);
}

#[test]
fn short_waits_add_up() {
    let mut converter = converter(true);
    for time in 0..10 {
        let leave = Event { time: Timestamp(time * MS), ..at(0, leave(1, &[0x20])) };
        let back = EventKind::SwitchIn { tid: Tid(1) };
        converter.push(leave);
        converter.push(Event { time: Timestamp(time * MS + MS * 3 / 10), ..at(0, back) });
    }
    assert_eq!(folded(&converter.finish().profile), ["0x20 1"; 3]);
}
