//! Tests of the profiles that the converter makes of events.

mod allocations;
pub(crate) mod changing_processes;
mod cpu_time;
pub(crate) mod frame_pointers;
mod losses;
pub(crate) mod occurrences;
mod pauses;
mod programs;
mod released_tids;
mod rows;
mod selections;
mod snapshots;
mod spools;
mod stacks;
mod switches;
mod waits;

use super::*;
use crate::event::{EventKind, MappedFile, Mapping, Pid, Registers, Sample, SampleState, Tid, UserStack};
use crate::selection::sample_selection::SampleSelection;
use crate::shape::Shape;
use nyquist_object::{Avma, FileOffset};
use nyquist_profile::{self as profile, Meta};
use std::borrow::Cow;

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

/// The function's name, or that which its address gets in code that nothing names.
fn name_of<'a>(profile: &'a Profile, frame: &profile::Frame) -> Cow<'a, str> {
    let func = &profile.funcs()[frame.func.index()];
    let lib = func.lib.map(|lib| &*profile.lib(lib).debug_name).unwrap_or_default();
    let base = lib.strip_prefix("[JIT]+0x").and_then(|base| u64::from_str_radix(base, 16).ok());
    match base.zip(frame.address) {
        Some((base, address)) => format!("{:#x}", base + u64::from(address)).into(),
        None => profile.func_name(frame.func).into(),
    }
}

/// Each sample of each thread as "outermost;...;innermost weight".
pub(crate) fn folded(profile: &Profile) -> Vec<String> {
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let line = |sample: profile::Sample| {
        let mut names: Vec<_> = sample
            .stack
            .into_iter()
            .flat_map(|stack| profile.stack_frames(stack))
            .map(|frame| name_of(profile, frame))
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

pub(crate) fn exec(time: u64, pid: u32, name: &str) -> Event {
    let name = name.to_owned();
    at(time, EventKind::Name { pid: Pid(pid), tid: Tid(pid), name, exec: true })
}

pub(crate) fn descheduled(tid: u32, preempted: bool) -> EventKind {
    EventKind::Descheduled { pid: Pid(1), tid: Tid(tid), preempted }
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
