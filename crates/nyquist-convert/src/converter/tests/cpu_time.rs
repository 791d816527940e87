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
