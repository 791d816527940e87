//! Recordings of a simulated system.

mod programs;

use std::sync::Arc;
use std::sync::mpsc::channel;

use nyquist_convert::event::{Event, EventKind, Sample, SampleState, UserStack};

use super::sampler::{Sampler, SamplerResult, SamplingPlan};
use super::simulated::{MS, SimActivity, SimMachine, SimProcess, SimSystem};
use super::system::SamplingDenied;
use crate::end_reason::EndReason;

const SECOND: u64 = 1000 * MS;
const COARSE: u64 = 15 * MS;

struct TestRecording {
    end: SamplerResult,
    events: Vec<Event>,
    machine: SimSystem,
}

fn machine(step_ns: u64, processes: &[(u32, SimProcess)]) -> SimSystem {
    let simulated = SimSystem::default();
    *simulated.0.borrow_mut() = SimMachine {
        now: SECOND,
        step_ns,
        processes: processes.iter().cloned().collect(),
        ..SimMachine::default()
    };
    simulated
}

fn plan(pids: &[u32], duration_ms: u64) -> SamplingPlan {
    SamplingPlan {
        pids: pids.to_vec(),
        is_new: false,
        own_pid: 1,
        interval_ns: MS,
        duration: Some(std::time::Duration::from_millis(duration_ms)),
        cpus: 64,
        most_copied: usize::MAX,
    }
}

fn record(machine: &SimSystem, plan: SamplingPlan) -> TestRecording {
    let (sender, chunks) = channel();
    let sampler = Sampler::open(machine.clone(), plan, sender, Arc::default()).unwrap();
    let end = sampler.run();
    let mut events = Vec::new();
    let mut complete = 0;
    for chunk in chunks {
        let from = events.len();
        let complete_before = chunk.complete_before().0;
        chunk.decode(&mut events);
        let late = events[from..].iter().find(|event| event.time.0 < complete);
        assert_eq!(late, None, "before {complete}");
        complete = complete_before;
    }
    TestRecording { end, events, machine: machine.clone() }
}

impl TestRecording {
    fn samples(&self, tid: u32) -> Vec<&Sample> {
        self.events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Sample(sample) if sample.tid.0 == tid => Some(sample),
                _ => None,
            })
            .collect()
    }

    fn running(&self, tid: u32) -> Vec<u64> {
        let running = |sample: &&Sample| matches!(sample.state, SampleState::Running { .. });
        self.samples(tid).into_iter().filter(running).filter_map(|sample| sample.cpu_time_ns).collect()
    }

    fn waited(&self, tid: u32) -> u64 {
        let waited = |sample: &Sample| match sample.state {
            SampleState::Waiting { waited_ns, .. } => waited_ns,
            _ => 0,
        };
        self.samples(tid).into_iter().map(waited).sum()
    }

    fn total(&self, tid: u32) -> u64 {
        let total = |event: &Event| match event.kind {
            EventKind::Total { tid: of, cpu_time_ns, .. } if of.0 == tid => Some(cpu_time_ns),
            _ => None,
        };
        self.events.iter().find_map(total).unwrap_or_else(|| panic!("no total of {tid}"))
    }

    fn has(&self, fits: impl Fn(&EventKind) -> bool) -> bool {
        self.events.iter().any(|event| fits(&event.kind))
    }

    fn cpu_ns(&self, tid: u32) -> u64 {
        self.machine.0.borrow_mut().thread(tid).unwrap().cpu_ns
    }

    fn suspensions(&self, tid: u32) -> u64 {
        self.machine.0.borrow_mut().thread(tid).unwrap().suspensions
    }
}

fn forever(threads: &[(u32, SimActivity)]) -> SimProcess {
    SimProcess::new(1, 0..u64::MAX, threads)
}

#[test]
fn cpu_time_is_conserved_whatever_the_clock() {
    for step in [0, COARSE] {
        let machine = machine(step, &[(10, forever(&[(11, SimActivity::Runs), (12, SimActivity::Runs)]))]);
        let recorded = record(&machine, plan(&[10], 1000));
        assert_eq!(recorded.end.reason, Some(EndReason::Duration));
        // The main thread has the number of its process.
        for (tid, shown) in [(11, 10), (12, 12)] {
            let (used, total) = (recorded.cpu_ns(tid), recorded.total(shown));
            assert!(used.abs_diff(total) <= step, "{total} of {used}");
            let running = recorded.running(shown);
            assert!((900..1100).contains(&running.len()), "{}", running.len());
            let largest = running.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert!(largest < 3 * MS, "{largest} ns of CPU time came at once");
        }
        let sum = recorded.total(10) + recorded.total(12);
        assert_eq!(recorded.end.total_cpu_time_ns, sum);
        assert!((1800..2200).contains(&recorded.end.holds.count));
        assert_eq!(recorded.end.holds.median_us, 5);
    }
}

/// The cycles that a processor counts are no measure of time. They show which threads have run.
#[test]
fn cycles_of_an_unknown_rate_change_no_sum() {
    let works = SimActivity::Both { period: 10 * MS, runs: 2 * MS };
    for rate in [0.25, 1.0, 4.0] {
        let threads = [(11, SimActivity::Runs), (12, works), (13, SimActivity::Waits)];
        let machine = machine(COARSE, &[(10, forever(&threads))]);
        machine.0.borrow_mut().finer_clock = Some(rate);
        let recorded = record(&machine, plan(&[10], 1000));
        for (tid, shown) in [(11, 10), (12, 12), (13, 13)] {
            let (used, total) = (recorded.cpu_ns(tid), recorded.total(shown));
            assert!(used.abs_diff(total) <= COARSE, "{rate}: {total} of {used}");
        }
        assert!((150..320).contains(&recorded.running(12).len()), "{rate}: {}", recorded.running(12).len());
        assert!(recorded.suspensions(13) <= 3, "{rate}: {} suspensions", recorded.suspensions(13));
    }
}

#[test]
fn a_refused_thread_does_not_hurry_listings() {
    let mut program = forever(&[(11, SimActivity::Runs), (12, SimActivity::Runs)]);
    program.threads.get_mut(&12).unwrap().is_protected = true;
    let machine = machine(0, &[(10, program)]);
    machine.0.borrow_mut().listing_ns = 4 * MS;
    let recorded = record(&machine, plan(&[10], 1000));
    let listings = machine.0.borrow().listings;
    assert!((50..80).contains(&listings), "{listings} listings of 4 ms with pauses of 10 ms");
    assert!(recorded.suspensions(12) == 0 && recorded.running(10).len() > 400);
}

#[test]
fn a_thread_without_room_is_not_suspended() {
    let machine = machine(0, &[(10, forever(&[(11, SimActivity::Runs)]))]);
    // The chunks are taken at the end, so that the pool runs out of buffers.
    let recorded = record(&machine, plan(&[10], 13_000));
    let (samples, suspensions) = (recorded.running(10).len() as u64, recorded.suspensions(11));
    assert!((10_000..12_500).contains(&samples), "{samples} samples");
    assert!(suspensions <= samples + 1, "{suspensions} suspensions for {samples} samples");
    assert!(recorded.has(|kind| matches!(kind, EventKind::Lost { records } if *records > 0)), "it is said");
}

#[test]
fn idle_threads_are_left_alone_and_use_nothing() {
    for (step, most) in [(0, 3), (COARSE, 40)] {
        let machine = machine(step, &[(10, forever(&[(11, SimActivity::Runs), (12, SimActivity::Waits)]))]);
        let recorded = record(&machine, plan(&[10], 1000));
        assert!(recorded.suspensions(12) <= most, "{} suspensions", recorded.suspensions(12));
        assert_eq!((recorded.running(12).len(), recorded.total(12)), (0, 0));
        let waited = recorded.waited(12);
        assert!((900 * MS..=1001 * MS).contains(&waited), "{waited}");
        let is_waiting = |sample: &&Sample| matches!(sample.state, SampleState::Waiting { .. });
        assert!(recorded.samples(12).iter().all(is_waiting));
    }
}

#[test]
fn a_sleeping_thread_has_its_time_where_it_ran() {
    for (step, period, runs) in [(0, 2 * MS, MS / 2), (COARSE, 2 * MS, MS / 2), (0, 50 * MS, 10 * MS)] {
        let machine = machine(step, &[(10, forever(&[(11, SimActivity::Both { period, runs })]))]);
        let recorded = record(&machine, plan(&[10], 2000));
        let (used, running) = (recorded.cpu_ns(11), recorded.running(10));
        let seen = *running.last().unwrap();
        assert!(used - seen.min(used) <= COARSE + 5 * MS, "{seen} of {used} with clock {step}");
        assert!(used.abs_diff(recorded.total(10)) <= step);
        let is_of_program = |sample: &&Sample| match (&sample.state, &sample.user) {
            (SampleState::Running { .. }, UserStack::Copied { registers, .. }) => {
                format!("{registers:?}").contains(&format!("{}]", 0x1010))
            }
            _ => true,
        };
        let samples = recorded.samples(10);
        let elsewhere = samples.iter().filter(|sample| !is_of_program(sample)).count();
        assert!(elsewhere * 10 <= running.len(), "{elsewhere} of {}", running.len());
    }
}

#[test]
fn threads_come_and_go() {
    let mut process = forever(&[(11, SimActivity::Runs), (12, SimActivity::Runs)]);
    let short = process.threads.get_mut(&12).unwrap();
    (short.began, short.ends) = (SECOND + 200 * MS, SECOND + 300 * MS);
    let recorded = record(&machine(0, &[(10, process)]), plan(&[10], 500));
    assert!(recorded.has(|kind| matches!(kind, EventKind::Fork { tid, .. } if tid.0 == 12)));
    assert!(recorded.has(|kind| matches!(kind, EventKind::Exit { tid, .. } if tid.0 == 12)));
    assert!(!recorded.has(|kind| matches!(kind, EventKind::Exit { tid, .. } if tid.0 == 10)));
    assert_eq!(recorded.total(12), recorded.cpu_ns(12));
    assert!((80..120).contains(&recorded.running(12).len()));
    let is_named = |kind: &EventKind| matches!(kind, EventKind::Name { name, .. } if name == "thread-12");
    assert!(recorded.has(is_named));
}

#[test]
fn refused_children_are_left_out() {
    let child = SimProcess::new(10, SECOND + 100 * MS..SECOND + 400 * MS, &[(21, SimActivity::Runs)]);
    let refused = SimProcess { refused: 0..u64::MAX, ..child.clone() };
    let grandchild = SimProcess::new(20, SECOND + 200 * MS..u64::MAX, &[(31, SimActivity::Runs)]);
    let all = [(10, forever(&[(11, SimActivity::Waits)])), (20, child), (25, refused), (30, grandchild)];
    let recorded = record(&machine(0, &all), plan(&[10], 600));
    for (pid, name) in [(20, "program-20.exe"), (30, "program-30.exe")] {
        let is_new = |kind: &EventKind| matches!(kind, EventKind::Name { pid: of, exec: true, name: its, .. } if of.0 == pid && its == name);
        assert!(recorded.has(is_new), "{name}");
    }
    assert_eq!((recorded.total(20), recorded.total(30)), (recorded.cpu_ns(21), recorded.cpu_ns(31)));
    assert!(recorded.has(|kind| matches!(kind, EventKind::Exit { pid, .. } if pid.0 == 20)));
    let left_out: Vec<_> = recorded.end.left_out.iter().map(|it| (it.pid.0, it.reason.as_str())).collect();
    assert_eq!(left_out, [(25, "25 is refused")]);
    assert!(recorded.end.left_running);
}

#[test]
fn a_process_may_end_while_suspended() {
    let process = SimProcess { ends_when_suspended: true, ends: None, ..forever(&[(11, SimActivity::Runs)]) };
    let recorded = record(&machine(0, &[(10, process)]), plan(&[10], 1000));
    assert_eq!(recorded.end.reason, Some(EndReason::Exited));
    assert!(!recorded.end.left_running);
    assert!(recorded.has(|kind| matches!(kind, EventKind::Exit { .. })));
}

#[test]
fn the_recording_ends_with_all_named_processes() {
    let end = |ms: u64| SimProcess::new(1, 0..SECOND + ms * MS, &[(ms as u32, SimActivity::Runs)]);
    let recorded = record(&machine(0, &[(10, end(100)), (20, end(300))]), plan(&[10, 20], 1000));
    assert_eq!(recorded.end.reason, Some(EndReason::Exited));
    assert!((300 * MS..310 * MS).contains(&(recorded.machine.0.borrow().now - SECOND)));
    assert!(!recorded.end.left_running);
}

#[test]
fn a_named_process_that_is_refused_is_an_error() {
    let refused = SimProcess { refused: 0..u64::MAX, ..forever(&[]) };
    let open = |pid| {
        let system = machine(0, &[(10, refused.clone())]);
        Sampler::open(system, plan(&[pid], 1), channel().0, Arc::default()).map(|_| ()).unwrap_err().1
    };
    assert!(matches!(open(10), SamplingDenied::Refused { .. }));
    assert_eq!(open(11), SamplingDenied::Gone);
}

#[test]
fn a_hostile_process_costs_no_more_than_others() {
    let process = SimProcess { is_hostile: true, ..forever(&[(11, SimActivity::Runs)]) };
    let recorded = record(&machine(0, &[(10, process)]), plan(&[10], 100));
    let longest = recorded.samples(10).into_iter().map(|sample| match &sample.user {
        UserStack::Copied { stack, .. } => stack.len(),
        _ => 0,
    });
    assert_eq!(longest.max(), Some(super::sampling::MAX_COPY_BYTES));
}

/// A running thread beside many that sleep for 20 ms at a time, if a suspension takes 3 ms.
fn among_sleepers(sleepers: u32, step_ns: u64) -> TestRecording {
    let sleeps = SimActivity::Both { period: 20 * MS, runs: 50_000 };
    let mut threads = vec![(11, SimActivity::Runs)];
    threads.extend((100..100 + sleepers).map(|tid| (tid, sleeps)));
    let machine = machine(step_ns, &[(10, forever(&threads))]);
    machine.0.borrow_mut().held_ns = 3 * MS;
    record(&machine, SamplingPlan { cpus: 2, ..plan(&[10], 3000) })
}

#[test]
fn waiting_threads_do_not_starve_running_ones() {
    for step in [0, COARSE] {
        let (alone, beside) = (among_sleepers(0, step), among_sleepers(200, step));
        let samples = [&alone, &beside].map(|recorded| recorded.running(10).len());
        assert!(samples[1] * 2 > samples[0], "{} samples alone, {} beside 200", samples[0], samples[1]);
        let waiting: u64 = (100..300).map(|tid| beside.suspensions(tid)).sum();
        assert!(waiting > 20, "{waiting} looks at waiting threads, which may run by now");
        let last = *beside.running(10).last().unwrap();
        assert!(beside.cpu_ns(11) - last < 200 * MS, "{last} of {}", beside.cpu_ns(11));
    }
}

#[test]
fn a_look_at_a_waiting_place_stands_for_little() {
    for step in [0, COARSE] {
        // Most of its time was used before the first look could be at it.
        let mut process = forever(&[(11, SimActivity::Both { period: 1000 * MS, runs: 600 * MS })]);
        process.threads.get_mut(&11).unwrap().began = SECOND;
        let machine = machine(step, &[(10, process)]);
        machine.0.borrow_mut().now = SECOND + 650 * MS;
        machine.0.borrow_mut().thread(11).unwrap().cpu_ns = 600 * MS;
        let recorded = record(&machine, SamplingPlan { is_new: true, ..plan(&[10], 300) });
        let most = recorded.running(10).last().copied().unwrap_or_default();
        assert!(most <= 10 * MS + 2 * step, "{most} ns for a place where it waits");
        assert_eq!(recorded.total(10), 600 * MS, "the rest is not sampled, and is said");
    }
}

#[test]
fn images_listed_late_are_in_time_for_samples() {
    let process = SimProcess { lists_images_from: SECOND + 120 * MS, ..forever(&[(11, SimActivity::Runs)]) };
    let recorded = record(&machine(0, &[(10, process)]), plan(&[10], 300));
    let time_of = |fits: fn(&EventKind) -> bool| {
        recorded.events.iter().filter(|event| fits(&event.kind)).map(|event| event.time.0).min().unwrap()
    };
    let mapped = time_of(|kind| matches!(kind, EventKind::Map(_)));
    assert!(mapped <= time_of(|kind| matches!(kind, EventKind::Sample(_))));
}

#[test]
fn made_code_is_mapped_without_a_file() {
    let made = 0x70_0000..0x71_0000;
    let process = SimProcess {
        made_code: vec![made.clone(), super::simulated::PROGRAM],
        ..forever(&[(11, SimActivity::Runs)])
    };
    let machine = machine(0, &[(10, process)]);
    machine.0.borrow_mut().made_code_ns = 10 * MS;
    let recorded = record(&machine, plan(&[10], 600));
    let without_file = recorded.events.iter().filter_map(|event| match &event.kind {
        EventKind::Map(mapping) if mapping.path == "//anon" => Some((mapping.start.0, mapping.len)),
        _ => None,
    });
    assert_eq!(
        without_file.collect::<Vec<_>>(),
        [(made.start, made.end - made.start)],
        "once, without the image"
    );
}

#[test]
fn slow_looks_for_made_code_are_rare() {
    let machine = machine(0, &[(10, forever(&[(11, SimActivity::Runs)]))]);
    machine.0.borrow_mut().made_code_ns = 200 * MS;
    record(&machine, plan(&[10], 4000));
    assert_eq!(machine.0.borrow().made_code_looks, 1, "one of 200 ms in 4 s");
}

#[test]
fn made_code_is_in_time_for_samples() {
    let made = 0x70_0000..0x71_0000;
    let late = SimProcess { made_code: vec![], ..forever(&[(11, SimActivity::Runs)]) };
    let machine = machine(0, &[(10, late)]);
    machine.0.borrow_mut().made_code_ns = 10 * MS;
    machine.0.borrow_mut().makes_code = Some((SECOND + 300 * MS, made));
    let recorded = record(&machine, plan(&[10], 900));
    let mapped = recorded
        .events
        .iter()
        .find(|event| matches!(&event.kind, EventKind::Map(mapping) if mapping.path == "//anon"));
    let time = mapped.unwrap().time.0;
    assert!(time <= SECOND + 300 * MS, "{} ms after it was made", (time - SECOND) / MS - 300);
}
