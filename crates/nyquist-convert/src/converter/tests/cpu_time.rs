//! Tests of how CPU time becomes weights.

use super::*;

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
fn a_process_never_sampled_is_not_the_kernels() {
    let mut converter = converter(false);
    converter.push(at(5, EventKind::Exit { pid: Pid(7), tid: Tid(7) }));
    converter.push(at(5, EventKind::Total { pid: Pid(7), tid: Tid(7), cpu_time_ns: 2 * MS + 1 }));
    assert_eq!(folded(&converter.finish().profile), ["[not sampled] 2"]);
}

/// A program that does nothing but read files may have no sample in its own code.
#[test]
fn a_long_process_never_sampled_is_the_kernels() {
    let events =
        |used_ms: u64| vec![total_of(10, None, 1, 15), exit_of(30, 1), total_of(30, Some(0), 1, used_ms)];
    assert_eq!(folded_of(false, events(20)), ["[kernel: not permitted] 20"]);
    assert_eq!(folded_of(false, events(19)), ["[not sampled] 19"]);
    // If the kernel is sampled, it would have samples, too.
    assert_eq!(folded_of(true, events(20)), ["[not sampled] 15", "[not sampled] 5"]);
}

#[test]
fn the_only_sampled_thread_has_its_processs_rest() {
    let mut converter = converter(false);
    converter.push(at(1, name(1, 1, "app", true)));
    converter.push(at(2, sample(1, 8, Some(2), &[1])));
    converter.push(at(9, EventKind::Total { pid: Pid(1), tid: Tid(8), cpu_time_ns: 5 * MS }));
    let profile = converter.finish().profile;
    let rows = profile.threads().iter().filter(|thread| !thread.samples.is_empty());
    assert_eq!(rows.map(|thread| thread.tid.as_str()).collect::<Vec<_>>(), ["8"]);
    let weights = profile.threads().iter().flat_map(|thread| &thread.samples).map(|sample| sample.weight);
    assert_eq!(weights.sum::<u64>(), 5, "{:?}", folded(&profile));
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

/// A sample of a thread on a CPU, without a count of its CPU time.
fn uncounted(time: u64, cpu: u32, tid: u32) -> Event {
    on(cpu, at(time, sample(1, tid, None, &[u64::from(tid)])))
}

/// The whole CPU time of a thread: on a CPU, or on all of them together.
fn total_of(time: u64, cpu: Option<u32>, tid: u32, used_ms: u64) -> Event {
    let kind = EventKind::Total { pid: Pid(1), tid: Tid(tid), cpu_time_ns: used_ms * MS };
    Event { cpu, ..at(time, kind) }
}

fn exit_of(time: u64, tid: u32) -> Event {
    at(time, EventKind::Exit { pid: Pid(1), tid: Tid(tid) })
}

fn folded_of(kernel_permitted: bool, events: Vec<Event>) -> Vec<String> {
    let mut converter = converter(kernel_permitted);
    for event in events {
        converter.push(event);
    }
    folded(&converter.finish().profile)
}

#[test]
fn a_total_includes_the_samples_before_it() {
    let events = || {
        let samples = (1..=10).map(|time| uncounted(time, (time % 2) as u32, 1));
        let totals = [total_of(20, Some(0), 1, 8), total_of(20, Some(1), 1, 6)];
        samples.chain([exit_of(19, 1)]).chain(totals).collect()
    };
    let samples = ["0x1 1"; 10];
    let in_kernel = ["[kernel: not permitted] 3", "[kernel: not permitted] 1"];
    assert_eq!(folded_of(false, events()), [&samples[..], &in_kernel].concat());
    assert_eq!(folded_of(true, events()), [&samples[..], &["[not sampled] 4"]].concat());
}

#[test]
fn readings_show_the_kernel_time_of_a_thread() {
    let events = vec![
        uncounted(1, 0, 1),
        total_of(5, None, 1, 4),
        uncounted(6, 1, 1),
        total_of(10, None, 1, 7),
        exit_of(11, 1),
        total_of(11, Some(0), 1, 5),
        total_of(11, Some(1), 1, 4),
    ];
    let kernel = |weight: u32| format!("[kernel: not permitted] {weight}");
    let expected = ["0x1 1".into(), kernel(3), "0x1 1".into(), kernel(2), kernel(2)];
    assert_eq!(folded_of(false, events.clone()), expected);
    // If the kernel is sampled, the next samples stand for one interval more each, and the rest is left over.
    assert_eq!(folded_of(true, events), ["0x1 1", "0x1 2", "[not sampled] 6"]);
}

/// The kernel exchanges the clocks of threads when it switches between them.
#[test]
fn threads_that_share_clocks_have_no_time_twice() {
    let events = |first: u32, second: u32| {
        let samples = (0..100).map(|time| uncounted(time, 0, if time < 60 { first } else { second }));
        let end = |tid| [exit_of(100, tid), total_of(101, Some(0), tid, 50)];
        samples.chain(end(1)).chain(end(2)).collect()
    };
    for (first, second) in [(1, 2), (2, 1)] {
        let found = folded_of(false, events(first, second));
        assert_eq!(found.len(), 100, "{:?}", found.last());
    }
}

#[test]
fn without_samples_no_time_is_the_kernels() {
    let mut converter = converter(false);
    for pid in 10..20 {
        converter.push(at(1, name(pid, pid, "true", true)));
        if pid % 5 == 0 {
            converter.push(at(2, sample(pid, pid, None, &[7])));
        }
        converter.push(at(3, EventKind::Exit { pid: Pid(pid), tid: Tid(pid) }));
        let cpu_time_ns = MS * 14 / 10;
        converter.push(at(3, EventKind::Total { pid: Pid(pid), tid: Tid(pid), cpu_time_ns }));
    }
    let shown = folded(&converter.finish().profile);
    let weights = shown.iter().filter_map(|line| line.rsplit_once(' '));
    let of = |label: &str| -> u64 {
        weights
            .clone()
            .filter(|(stack, _)| *stack == label)
            .map(|(_, weight)| weight.parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!((of("0x7"), of("[kernel: not permitted]"), of("[not sampled]")), (2, 0, 12), "{shown:?}");
}

/// When several threads end at once, the kernel loses records of their totals.
#[test]
fn time_of_lost_totals_is_not_left_out() {
    let all = |cpu_time_ns| at(0, EventKind::TotalInAll { cpu_time_ns });
    let events =
        vec![uncounted(1, 0, 1), exit_of(2, 2), exit_of(3, 1), total_of(3, Some(0), 1, 3), all(9 * MS)];
    assert_eq!(folded_of(false, events), ["0x1 1", "[kernel: not permitted] 2", "[not sampled] 6"]);
}

/// By ptrace, a thread may end before it is looked at. Its own clock shows what it has used.
#[test]
fn a_clock_of_a_thread_shows_its_own_time() {
    let mut converter = converter(true);
    let EventKind::Sample(first) = sample(1, 1, Some(1), &[1]) else { unreachable!() };
    let state = SampleState::Running { waited_ns: 0 };
    converter.push(at(1, EventKind::Sample(Sample { state, ..first })));
    for (time, tid, used_ms) in [(7, 2, 5), (8, 3, 6), (9, 1, 3)] {
        let used = EventKind::Total { pid: Pid(1), tid: Tid(tid), cpu_time_ns: used_ms * MS + 1 };
        converter.push(at(time, used));
        converter.push(exit_of(time, tid));
    }
    let profile = converter.finish().profile;
    let weights = |tid: &str| {
        let rows = profile.threads().iter().filter(|thread| thread.tid.as_str() == tid);
        rows.flat_map(|thread| &thread.samples).map(|sample| sample.weight).sum::<u64>()
    };
    assert_eq!(["1", "2", "3"].map(weights), [3, 5, 6], "{:?}", folded(&profile));
}
