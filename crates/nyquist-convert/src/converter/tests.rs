//! Tests of the profiles that the converter makes of events.

pub(crate) mod changing_processes;
pub(crate) mod frame_pointers;
mod losses;
pub(crate) mod occurrences;
mod programs;
mod released_tids;
mod waits;

use super::*;
use crate::event::{EventKind, MappedFile, Mapping, Pid, Registers, Sample, SampleState, Tid, UserStack};
use crate::selection::sample_selection::SampleSelection;
use crate::shape::Shape;
use nyquist_object::{Avma, FileOffset};
use nyquist_profile::{self as profile, Meta};

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn options() -> Options {
    Options::new(Timestamp(0), Meta { interval: MS, ..Meta::default() })
}

pub(crate) fn converter(kernel_permitted: bool) -> Converter {
    Converter::new(Options { kernel_permitted, ..options() })
}

/// A converter to a profile of this shape.
pub(crate) fn shaped(shape: Shape) -> Converter {
    Converter::new(Options { shape, ..options() })
}

/// A converter of the samples that are selected.
pub(crate) fn selecting(selection: SampleSelection) -> Converter {
    Converter::new(Options { selection, ..options() })
}

pub(crate) fn at(time_ms: u64, kind: EventKind) -> Event {
    Event { time: Timestamp(time_ms * MS), cpu: Some(0), kind }
}

pub(crate) fn on(cpu: u32, event: Event) -> Event {
    Event { cpu: Some(cpu), ..event }
}

pub(crate) fn sample(pid: u32, tid: u32, used_ms: Option<u64>, stack: &[u64]) -> EventKind {
    let user = UserStack::Walked(stack.iter().map(|&address| Avma(address)).collect());
    let cpu_time_ns = used_ms.map(|used| used * MS);
    EventKind::Sample(Sample { tid: Tid(tid), cpu_time_ns, ..Sample::in_user_code(Pid(pid), user) })
}

/// Each sample of each thread as "outermost;...;innermost weight".
pub(crate) fn folded(profile: &Profile) -> Vec<String> {
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let line = |sample: profile::Sample| {
        let mut names: Vec<_> = sample
            .stack
            .into_iter()
            .flat_map(|stack| profile.stack_frames(stack))
            .map(|frame| profile.func_name(frame.func))
            .collect();
        names.reverse();
        format!("{} {}", names.join(";"), sample.weight)
    };
    samples.map(line).collect()
}

pub(crate) fn name(pid: u32, tid: u32, name: &str, exec: bool) -> EventKind {
    EventKind::Name { pid: Pid(pid), tid: Tid(tid), name: name.to_owned(), exec }
}

pub(crate) fn fork(pid: u32, tid: u32, parent: u32) -> EventKind {
    EventKind::Fork { pid: Pid(pid), tid: Tid(tid), parent_pid: Pid(parent), parent_tid: Tid(parent) }
}

pub(crate) fn exit(pid: u32, tid: u32) -> EventKind {
    EventKind::Exit { pid: Pid(pid), tid: Tid(tid) }
}

/// The profile of these events, one each millisecond: each row as "process.thread samples start-end".
pub(crate) fn rows(shape: Shape, events: Vec<EventKind>) -> Vec<String> {
    let mut converter = shaped(shape);
    for (time, event) in (1..).zip(events) {
        converter.push(at(time, event));
    }
    let profile = converter.finish().profile;
    let row = |thread: &profile::Thread| {
        let process = &profile.process(thread.process).name;
        let end = thread.end.map_or_else(String::new, |end| (end / MS).to_string());
        format!("{process}.{} {} {}-{end}", thread.name, thread.samples.len(), thread.start / MS)
    };
    profile.threads().iter().map(row).collect()
}

const REUSE: Shape = Shape {
    reuse_threads: true,
    fold_recursive_prefix: false,
    cpu_threads: false,
    main_threads_only: false,
    program_arguments: 0,
    switch_markers: false,
    waits: false,
    jit_markers: false,
};

#[test]
fn threads_of_one_name_share_a_row_in_turn() {
    let events = || {
        let mut events = vec![name(1, 1, "app", true), sample(1, 1, None, &[1])];
        for tid in [2, 3] {
            events.extend([fork(1, tid, 1), name(1, tid, "worker", false), sample(1, tid, None, &[2])]);
        }
        events.extend([exit(1, 3), fork(1, 4, 1), name(1, 4, "worker", false), sample(1, 4, None, &[3])]);
        events
    };
    assert_eq!(rows(Shape::default(), events()).len(), 4);
    assert_eq!(
        rows(REUSE, events()),
        ["app.app 1 1-", "worker.worker 1 3-", "worker.worker 2 6-"]
            .map(|row| row.replace("worker.", "app."))
    );
}

#[test]
fn processes_of_one_name_share_a_row_in_turn() {
    let mut events = vec![name(1, 1, "sh", true)];
    for pid in [2, 3] {
        events.extend([fork(pid, pid, 1), name(pid, pid, "true", true), sample(pid, pid, None, &[1])]);
        events.push(exit(pid, pid));
    }
    // Nothing was sampled while it lived.
    events.extend([fork(4, 4, 1), name(4, 4, "true", true), exit(4, 4)]);
    events.push(EventKind::Total { pid: Pid(4), tid: Tid(4), cpu_time_ns: 3 * MS });
    assert_eq!(rows(REUSE, events), ["true.true 3 2-12"]);
}

#[test]
fn a_row_is_left_to_its_name_after_a_rename() {
    let mut events = vec![name(1, 1, "sh", true), sample(1, 1, None, &[1])];
    for (pid, program) in [(2, "ls"), (3, "cat")] {
        // The child is a shell until it becomes another program.
        events.extend([fork(pid, pid, 1), sample(pid, pid, None, &[1])]);
        events.extend([name(pid, pid, program, true), sample(pid, pid, None, &[2]), exit(pid, pid)]);
    }
    assert_eq!(rows(REUSE, events), ["sh.sh 1 1-", "ls.ls 2 3-7", "cat.cat 2 8-12"]);
}

#[test]
fn samples_before_exec_make_no_row_per_child() {
    let mut events = vec![name(1, 1, "sh", true), sample(1, 1, None, &[1])];
    for pid in [2, 3, 4] {
        events.extend([fork(pid, pid, 1), sample(pid, pid, None, &[1])]);
        events.extend([name(pid, pid, "true", true), sample(pid, pid, None, &[2]), exit(pid, pid)]);
    }
    assert_eq!(rows(REUSE, events), ["sh.sh 1 1-", "true.true 4 3-17", "sh.sh 2 8-"]);
}

#[test]
fn a_thread_takes_a_row_of_the_name_it_chooses() {
    let mut events = vec![name(1, 1, "app", true), sample(1, 1, None, &[1])];
    for tid in [2, 3] {
        events.extend([fork(1, tid, 1), sample(1, tid, None, &[1])]);
        events.extend([name(1, tid, "worker", false), sample(1, tid, None, &[2]), exit(1, tid)]);
    }
    assert_eq!(rows(REUSE, events), ["app.app 1 1-", "app.worker 3 3-12", "app.app 1 8-"]);
}

#[test]
fn only_main_threads_where_they_alone_are_wanted() {
    let mut events = vec![sample(1, 1, None, &[1]), sample(1, 2, None, &[1]), sample(3, 3, None, &[1])];
    events.push(EventKind::Total { pid: Pid(1), tid: Tid(5), cpu_time_ns: 9 * MS });
    let shape = Shape { main_threads_only: true, ..Shape::default() };
    assert_eq!(rows(shape, events).len(), 2);
}

#[test]
fn the_base_of_a_recursion_is_folded() {
    let check = |stack: &[u64], expected: &str| {
        let mut converter = shaped(Shape { fold_recursive_prefix: true, ..Shape::default() });
        converter.push(at(1, sample(1, 1, None, stack)));
        assert_eq!(folded(&converter.finish().profile), [expected]);
    };
    check(&[0x30, 0x11, 0x11, 0x11], "0x10;0x30 1");
    check(&[0x30, 0x11, 0x11, 0x21], "0x20;0x10;0x10;0x30 1");
    check(&[0x11], "0x11 1");
}

#[test]
fn a_cpu_has_what_ran_on_it() {
    let mut converter = shaped(Shape { cpu_threads: true, ..Shape::default() });
    converter.push(at(0, name(1, 1, "app", true)));
    for (time, cpu) in [(1, 0), (2, 3), (3, 0)] {
        converter.push(Event { cpu: Some(cpu), ..at(time, sample(1, 1, None, &[0x10])) });
    }
    let profile = converter.finish().profile;
    let rows: Vec<_> = profile
        .threads()
        .iter()
        .map(|thread| {
            (profile.process(thread.process).name.as_str(), thread.name.as_str(), thread.samples.len())
        })
        .collect();
    assert_eq!(rows, [("app", "app", 3), ("CPU", "All CPUs", 3), ("CPU", "CPU 0", 2), ("CPU", "CPU 3", 1)]);
    assert_eq!(folded(&profile)[3], "app (process 1, thread 1);0x10 1");
}

#[test]
fn the_last_sample_lies_before_the_end() {
    let mut converter = converter(true);
    converter.push(at(7, sample(1, 1, None, &[0x10])));
    let profile = converter.finish().profile;
    let last = profile.threads()[0].samples.first().unwrap().time;
    assert!(profile.meta().profiling_end > Some(last));
}

#[test]
fn a_recording_is_as_long_as_it_was_noted() {
    let end = |noted: u64| {
        let mut converter = converter(true);
        converter.push(at(7, sample(1, 1, None, &[0x10])));
        converter.note_end(at(noted, sample(1, 1, None, &[])).time);
        converter.finish().profile.meta().profiling_end
    };
    assert_eq!(end(7), end(1), "the last event is later");
    assert_eq!(end(90).zip(end(7)).map(|(late, early)| late - early), Some(83 * MS));
}

#[test]
fn return_addresses_are_looked_up_a_byte_earlier() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[0x30, 0x20, 0x10])));
    assert_eq!(folded(&converter.finish().profile), ["0xf;0x1f;0x30 1"]);
}

#[test]
fn kernel_frames_are_on_top_of_user_frames() {
    let mut converter = converter(true);
    let EventKind::Sample(mut both) = sample(1, 1, None, &[0x10]) else { unreachable!() };
    both.kernel_stack = vec![Avma(0xffff_0000_0000_0010), Avma(0xffff_0000_0000_0021)];
    converter.push(at(1, EventKind::Sample(both)));
    let profile = converter.finish().profile;
    assert_eq!(folded(&profile), ["0x10;0xffff000000000020;0xffff000000000010 1"]);
    let categories: Vec<_> = profile
        .frames()
        .iter()
        .map(|frame| profile.category(frame.category.unwrap().category).name.as_str())
        .collect();
    assert_eq!(categories, ["User", "Kernel", "Kernel"]);
}

#[test]
fn samples_are_of_the_thread_they_name() {
    let mut converter = converter(true);
    let name =
        |pid, name: &str| EventKind::Name { pid: Pid(pid), tid: Tid(pid), name: name.to_owned(), exec: true };
    let fork = EventKind::Fork { pid: Pid(2), tid: Tid(2), parent_pid: Pid(1), parent_tid: Tid(1) };
    converter.push(at(0, name(1, "parent")));
    converter.push(at(2, fork));
    converter.push(at(3, name(2, "child")));
    converter.push(at(4, sample(2, 2, None, &[1])));
    converter.push(at(5, EventKind::Exit { pid: Pid(2), tid: Tid(2) }));
    converter.push(at(6, sample(1, 1, None, &[2])));
    let profile = converter.finish().profile;
    let processes: Vec<_> = profile
        .processes()
        .iter()
        .map(|process| (process.name.as_str(), process.start / MS, process.end.map(|end| end / MS)))
        .collect();
    assert_eq!(processes, [("child", 2, Some(5)), ("parent", 0, None)]);
}

#[test]
fn a_number_used_again_gives_two_processes() {
    let mut converter = converter(true);
    let fork = || EventKind::Fork { pid: Pid(2), tid: Tid(2), parent_pid: Pid(1), parent_tid: Tid(1) };
    converter.push(at(1, fork()));
    converter.push(at(2, sample(2, 2, None, &[1])));
    converter.push(at(3, EventKind::Exit { pid: Pid(2), tid: Tid(2) }));
    converter.push(at(4, fork()));
    converter.push(at(5, sample(2, 2, None, &[1])));
    let profile = converter.finish().profile;
    let pids: Vec<_> = profile.processes().iter().map(|process| process.pid.as_str()).collect();
    assert_eq!(pids, ["2", "2.1"]);
    assert_eq!(profile.processes()[0].end, Some(3 * MS));
}

#[test]
fn unsampled_cpu_time_is_the_forbidden_kernels() {
    let mut converter = converter(false);
    converter.push(at(1, sample(1, 1, Some(1), &[1])));
    converter.push(at(9, sample(1, 1, Some(6), &[1])));
    converter.push(at(12, EventKind::Total { pid: Pid(1), tid: Tid(1), cpu_time_ns: 9 * MS }));
    let profile = converter.finish().profile;
    assert_eq!(
        folded(&profile),
        ["0x1 1", "[kernel: not permitted] 4", "0x1 1", "[kernel: not permitted] 3"]
    );
    let deltas: Vec<_> = profile.threads()[0].samples.iter().map(|sample| sample.cpu_delta / MS).collect();
    assert_eq!(deltas, [1, 4, 1, 3]);
}

#[test]
fn a_thread_never_sampled_shows_up_by_its_total() {
    let mut converter = converter(false);
    converter.push(at(5, EventKind::Exit { pid: Pid(7), tid: Tid(7) }));
    converter.push(at(5, EventKind::Total { pid: Pid(7), tid: Tid(7), cpu_time_ns: 2 * MS + 1 }));
    assert_eq!(folded(&converter.finish().profile), ["[kernel: not permitted] 2"]);
}

#[test]
fn a_sample_stands_for_the_time_since_the_last() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, Some(1), &[1])));
    converter.push(at(9, sample(1, 1, Some(6), &[1])));
    let profile = converter.finish().profile;
    assert_eq!(folded(&profile), ["0x1 1", "0x1 5"]);
    assert_eq!(profile.threads()[0].samples.get(1).unwrap().cpu_delta, 5 * MS);
}

#[test]
fn wall_clock_samples_tell_running_from_waiting() {
    use SampleState::{Runnable, Running, Waiting};
    let mut converter = converter(true);
    let sampled_state = |used_ms, state, address| {
        let EventKind::Sample(sample) = sample(1, 1, Some(used_ms), &[address]) else { unreachable!() };
        EventKind::Sample(Sample { state, ..sample })
    };
    converter.push(at(1, sampled_state(1, Running { waited_ns: 0 }, 1)));
    // It has run and blocked since. This CPU time goes to the next running sample.
    converter.push(at(9, sampled_state(3, Waiting { waited_ns: 6 * MS, reason: None }, 2)));
    converter.push(at(10, sampled_state(4, Running { waited_ns: 0 }, 3)));
    // It seems to run, but has waited for a CPU.
    converter.push(at(12, sampled_state(4, Running { waited_ns: 2 * MS }, 4)));
    // Neither time is long enough for a sample yet.
    converter.push(at(12, sampled_state(4, Running { waited_ns: 1 }, 5)));
    // It is in the middle of its code, but has not run. Its CPU time before belongs to another sample.
    converter.push(at(14, sampled_state(5, Runnable { waited_ns: 2 * MS }, 6)));
    let profile = converter.finish().profile;
    assert_eq!(
        folded(&profile),
        ["0x1 1", "0x2 6", "0x3 3", "0x4;[waiting for a CPU] 2", "0x6;[waiting for a CPU] 2"]
    );
    let samples = &profile.threads()[0].samples;
    let off_cpu: Vec<_> = samples.iter().map(|sample| sample.off_cpu).collect();
    assert_eq!(off_cpu, [false, true, false, true, true]);
    let deltas: Vec<_> = samples.iter().map(|sample| sample.cpu_delta / MS).collect();
    assert_eq!(deltas, [1, 2, 1, 0, 1]);
}

#[test]
fn processes_too_short_for_samples_share_a_row() {
    let mut converter = converter(true);
    for pid in 10..20 {
        let name = EventKind::Name { pid: Pid(pid), tid: Tid(pid), name: "true".to_owned(), exec: true };
        converter.push(at(1, name));
        let total = EventKind::Total { pid: Pid(pid), tid: Tid(pid), cpu_time_ns: MS * 7 / 10 };
        converter.push(at(2, total));
    }
    let profile = converter.finish().profile;
    assert_eq!(folded(&profile), vec!["[not sampled] 1"; 7]);
    assert!(profile.processes().iter().all(|process| process.name == "true"));
}

#[test]
fn a_stack_that_cannot_be_finished_says_why() {
    let mut converter = converter(true);
    let mapping = Mapping {
        pid: Some(Pid(1)),
        start: Avma(0x1000),
        len: 0x1000,
        offset: FileOffset(0),
        path: "//anon".to_owned(),
        identity: MappedFile::Unknown,
    };
    converter.push(at(0, EventKind::Map(mapping)));
    let mut registers = [0; 17];
    registers[16] = 0x1234;
    let EventKind::Sample(mut cut) = sample(1, 1, None, &[]) else { unreachable!() };
    cut.user = UserStack::Copied {
        registers: Box::new(Registers::X86_64(registers)),
        stack: bytes::Bytes::new(),
        limited: false,
    };
    converter.push(at(1, EventKind::Sample(cut)));
    let finished = converter.finish();
    assert_eq!(folded(&finished.profile), ["(truncated: no unwind information);0x1234 1"]);
    assert_eq!(finished.statistics.truncated, 1);
}

#[test]
fn in_the_middle_of_exec_there_is_no_user_stack() {
    let mut converter = converter(true);
    let exec = EventKind::Name { pid: Pid(1), tid: Tid(1), name: "new".to_owned(), exec: true };
    converter.push(at(1, exec));
    let mut registers = [0; 17];
    registers[16] = 0x1234;
    let EventKind::Sample(mut sample) = sample(1, 1, None, &[]) else { unreachable!() };
    sample.in_kernel = true;
    sample.kernel_stack = vec![Avma(0xffff_0000_0000_0010)];
    sample.user = UserStack::Copied {
        registers: Box::new(Registers::X86_64(registers)),
        stack: bytes::Bytes::from_static(&[0; 8]),
        limited: false,
    };
    converter.push(at(2, EventKind::Sample(sample)));
    assert_eq!(folded(&converter.finish().profile), ["0xffff000000000010 1"]);
}

#[test]
fn a_snapshot_is_the_profile_so_far() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[1])));
    converter.push(at(5, sample(1, 1, None, &[2])));
    converter.advance(Timestamp(2 * MS));
    assert_eq!(folded(&converter.snapshot()), ["0x1 1"]);
    assert_eq!(folded(&converter.finish().profile), ["0x1 1", "0x2 1"]);
}

#[test]
fn evicting_forgets_old_samples_and_their_stacks() {
    for root in [0x100, 0x7fff_ffff_0100] {
        let mut converter = converter(true);
        for time in 1..10 {
            converter.push(at(time, sample(1, 1, None, &[time, root + 1])));
        }
        converter.advance(Timestamp(100 * MS));
        converter.evict(Timestamp(8 * MS));
        converter.push(at(100, sample(1, 1, None, &[3, root + 1])));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), [8, 9, 3].map(|leaf| format!("{root:#x};{leaf:#x} 1")));
        assert_eq!(profile.stacks().len(), 4);
    }
}

#[test]
fn condensing_keeps_the_sums_of_what_is_old() {
    let mut converter = converter(true);
    for time in 1..10 {
        converter.push(at(time, sample(1, 1, None, &[time % 2, 0x101])));
    }
    converter.advance(Timestamp(100 * MS));
    converter.condense(Timestamp(7 * MS));
    assert_eq!(
        folded(&converter.snapshot()),
        ["0x100;0x1 1", "0x100;0x0 3", "0x100;0x1 2", "0x100;0x1 1", "0x100;0x0 1", "0x100;0x1 1"]
    );
}

#[test]
fn no_number_of_a_source_is_too_large() {
    let mut converter = converter(true);
    converter.push(at(1, EventKind::Lost { records: u64::MAX }));
    converter.push(at(2, EventKind::Lost { records: u64::MAX }));
    converter.push(Event { time: Timestamp(u64::MAX - 1), cpu: Some(0), kind: sample(1, 1, None, &[1]) });
    for cpu in [Some(0), Some(1), None] {
        let kind = EventKind::Total { pid: Pid(1), tid: Tid(1), cpu_time_ns: u64::MAX };
        converter.push(Event { time: Timestamp(u64::MAX - 1), cpu, kind });
    }
    let finished = converter.finish();
    assert_eq!((finished.statistics.lost, finished.profile.meta().lost_samples), (u64::MAX, u64::MAX));
    // As the front end does, samples at the end are left out.
    let milliseconds = |ns: u64| ns as f64 / MS as f64;
    let (end, last) = (
        finished.profile.meta().profiling_end.unwrap(),
        finished.profile.threads()[0].samples.first().unwrap(),
    );
    assert!(milliseconds(last.time) < milliseconds(end));
}

pub(crate) fn leave(pid: u32, stack: &[u64]) -> EventKind {
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

#[test]
fn without_main_thread_the_first_row_stands_in() {
    let mut converter = converter(true);
    converter.push(at(0, name(1, 1, "rustc", true)));
    for (tid, own) in [(2, "cgu 0"), (3, "cgu 1")] {
        converter.push(at(0, fork(1, tid, 1)));
        converter.push(at(0, name(1, tid, own, false)));
        converter.push(at(1, sample(1, tid, None, &[1])));
    }
    let profile = converter.finish().profile;
    let rows: Vec<_> = profile.threads().iter().map(|row| (&*row.name, row.is_main)).collect();
    assert_eq!(rows, [("rustc (cgu 0)", true), ("cgu 1", false)]);
}

#[test]
fn only_samples_that_are_wanted_are_converted() {
    let check = |selection: SampleSelection, expected: &[&str]| {
        let mut converter = selecting(selection);
        let name = |pid, tid, name: &str| EventKind::Name {
            pid: Pid(pid),
            tid: Tid(tid),
            name: name.to_owned(),
            exec: false,
        };
        converter.push(at(0, name(1, 1, "server")));
        converter.push(at(0, name(1, 2, "worker")));
        converter.push(at(0, name(3, 3, "client")));
        converter.push(at(1, sample(1, 1, None, &[1])));
        converter.push(at(2, sample(1, 2, None, &[2])));
        converter.push(Event { cpu: Some(4), ..at(3, sample(3, 3, None, &[3])) });
        assert_eq!(folded(&converter.finish().profile), expected);
    };
    check(SampleSelection::default(), &["0x1 1", "0x2 1", "0x3 1"]);
    check(SampleSelection { pids: vec![Pid(1)], ..SampleSelection::default() }, &["0x1 1", "0x2 1"]);
    check(SampleSelection { tids: vec![Tid(2), Tid(3)], ..SampleSelection::default() }, &["0x2 1", "0x3 1"]);
    check(SampleSelection { cpus: vec![4], ..SampleSelection::default() }, &["0x3 1"]);
    check(SampleSelection { names: vec!["worker".into()], ..SampleSelection::default() }, &["0x2 1"]);
    check(
        SampleSelection { names: vec!["server".into()], ..SampleSelection::default() },
        &["0x1 1", "0x2 1"],
    );
    let time = Some(2 * MS..3 * MS);
    check(SampleSelection { time, ..SampleSelection::default() }, &["0x2 1"]);
    check(SampleSelection { pids: vec![Pid(1)], cpus: vec![4], ..SampleSelection::default() }, &[]);
}

pub(crate) fn exec(time: u64, pid: u32, name: &str) -> Event {
    let name = name.to_owned();
    at(time, EventKind::Name { pid: Pid(pid), tid: Tid(pid), name, exec: true })
}

pub(crate) fn born(time: u64, pid: u32, parent: u32) -> Event {
    let (pid, tid) = (Pid(pid), Tid(pid));
    at(time, EventKind::Fork { pid, tid, parent_pid: Pid(parent), parent_tid: Tid(parent) })
}

/// The samples that a filter keeps, each by its address.
pub(crate) fn kept(filter: ProcessFilter, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let mut converter = Converter::new(Options { filter, ..options() });
    for event in events {
        converter.push(event);
    }
    folded(&converter.finish().profile)
}

#[test]
fn an_idle_cpu_is_nobodys_doing() {
    assert_eq!(kept(ProcessFilter::All, [at(1, sample(0, 0, None, &[1]))]), [""; 0]);
}

#[test]
fn what_runs_before_exec_is_not_the_commands() {
    let events = [
        at(1, sample(7, 7, None, &[1])),
        at(1, sample(8, 8, None, &[2])),
        exec(2, 7, "x"),
        at(3, sample(7, 7, None, &[3])),
    ];
    assert_eq!(kept(ProcessFilter::FromExec(Pid(7)), events), ["0x2 1", "0x3 1"]);
}

#[test]
fn a_family_is_what_descends_from_a_process() {
    let events = [
        at(1, sample(7, 7, None, &[1])),
        exec(2, 7, "x"),
        born(3, 8, 7),
        born(4, 9, 8),
        born(4, 10, 1),
        at(5, sample(7, 7, None, &[7])),
        at(6, sample(9, 9, None, &[9])),
        at(6, sample(10, 10, None, &[10])),
        born(7, 7, 1),
        exec(8, 7, "another"),
        at(9, sample(7, 7, None, &[11])),
    ];
    assert_eq!(kept(ProcessFilter::Family([Pid(7)].into()), events), ["0x7 1", "0x9 1"]);
}

#[test]
fn processes_are_kept_by_their_names_at_the_time() {
    let events = [
        exec(1, 7, "cc1plus"),
        at(2, sample(7, 7, None, &[1])),
        exec(3, 7, "ld"),
        at(4, sample(7, 7, None, &[2])),
    ];
    let filter = ProcessFilter::Named(vec![crate::NamePattern::new("cc1*")]);
    assert_eq!(kept(filter, events), ["0x1 1"]);
}

pub(crate) fn descheduled(tid: u32, preempted: bool) -> EventKind {
    EventKind::Descheduled { pid: Pid(1), tid: Tid(tid), preempted }
}

/// Each marker as "thread: name values start-end", with times in ms.
pub(crate) fn marker_lines(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for thread in profile.threads() {
        for marker in &thread.markers {
            let value = |value: &profile::MarkerValue| match value {
                profile::MarkerValue::String(id) => profile.string(*id).to_owned(),
                profile::MarkerValue::Missing => "-".to_owned(),
                other => format!("{other:?}"),
            };
            let values: Vec<_> = marker.values.iter().map(value).collect();
            let when = match marker.timing {
                profile::MarkerTiming::Interval(start, end) => format!("{}-{}", start / MS, end / MS),
                profile::MarkerTiming::Instant(time) => format!("{}", time / MS),
                other => panic!("{other:?}"),
            };
            let name = profile.string(marker.name);
            lines.push(format!("{}: {name} {} {when}", thread.tid, values.join(" ")));
        }
    }
    lines
}

/// Two threads that alternate on one CPU.
pub(crate) fn switches(shape: Shape) -> Profile {
    let mut converter = shaped(shape);
    converter.push(at(1, name(1, 1, "app", true)));
    converter.push(at(2, fork(1, 2, 1)));
    let come = |tid| EventKind::SwitchIn { tid: Tid(tid) };
    let events = [
        (4, descheduled(1, false)),
        (4, come(2)),
        (6, descheduled(2, true)),
        (6, come(1)),
        // The idle task, and a thread that has no number any more, belong to no process.
        (7, descheduled(1, false)),
        (7, come(0)),
        (8, EventKind::Descheduled { pid: Pid(0), tid: Tid(0), preempted: false }),
        (8, come(2)),
        (9, exit(1, 2)),
        (9, descheduled(2, false)),
        (9, EventKind::Descheduled { pid: Pid(u32::MAX), tid: Tid(u32::MAX), preempted: false }),
        (9, EventKind::Descheduled { pid: Pid(1), tid: Tid(u32::MAX), preempted: false }),
        (9, come(1)),
        (11, sample(1, 1, None, &[1])),
    ];
    for (time, event) in events {
        converter.push(at(time, event));
    }
    converter.finish().profile
}

#[test]
fn intervals_on_a_cpu_are_markers_of_threads() {
    let shape = Shape { switch_markers: true, ..Shape::default() };
    assert_eq!(
        marker_lines(&switches(shape)),
        [
            "1: Running on CPU CPU 0 blocked 1-4",
            "1: Running on CPU CPU 0 blocked 6-7",
            "1: Running on CPU CPU 0 recording ended 9-11",
            "2: Running on CPU CPU 0 preempted 4-6",
            "2: Running on CPU CPU 0 ended 8-9",
        ]
    );
    assert_eq!(marker_lines(&switches(Shape::default())), [""; 0]);
}

#[test]
fn intervals_on_a_cpu_are_markers_on_its_row() {
    let shape =
        Shape { switch_markers: true, cpu_threads: true, main_threads_only: true, ..Shape::default() };
    let lines = marker_lines(&switches(shape));
    let of_cpu: Vec<_> = lines.iter().filter(|line| line.contains(": CPU 0 ")).collect();
    assert_eq!(of_cpu.len(), 6, "each of three on the CPU's row and on that of all: {lines:?}");
    assert!(of_cpu[0].ends_with(": CPU 0 app (process 1, thread 1) blocked 1-4"), "{lines:?}");
}
