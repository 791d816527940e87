//! Live recordings with `perf_event_open`: as root or not, at any perf_event_paranoid up to 2.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::Duration;

use nyquist_convert::event::{Event, EventKind, Pid, Sample, Timestamp, UserStack};
use nyquist_record::linux::launch::{ChildExit, prepare};
use nyquist_record::linux::perf::{
    Coverage, Notice, OpenError, Perf, PerfOutcome, PerfRecording, PerfSummary,
};
use nyquist_record::linux::{Command, EndReason, Options, RecordingTarget, now};

/// Uses about half a second of CPU time, almost all in user code.
const WORK: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";

/// The result of a recording.
struct TestRecording {
    events: Vec<Event>,
    outcome: PerfOutcome,
    summary: PerfSummary,
    ended: Option<ChildExit>,
    /// How long the hypervisor took the machine's CPUs away meanwhile.
    stolen: Duration,
}

impl TestRecording {
    fn samples(&self) -> impl Iterator<Item = (&Event, &Sample)> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Sample(sample) => Some((event, sample)),
            _ => None,
        })
    }

    /// The CPU time that the samples represent.
    fn sampled(&self) -> Duration {
        Duration::from_nanos(self.samples().map(|(_, sample)| sample.period_ns).sum())
    }

    /// The CPU time in the last count of every thread, by CPU.
    fn counted(&self) -> Duration {
        let mut counts = BTreeMap::new();
        for event in &self.events {
            match event.kind {
                EventKind::Sample(Sample { tid, cpu_time_ns: Some(time), .. })
                | EventKind::Total { tid, cpu_time_ns: time, .. } => counts.insert((tid.0, event.cpu), time),
                _ => None,
            };
        }
        Duration::from_nanos(counts.values().sum())
    }

    fn total(&self) -> Duration {
        Duration::from_nanos(self.summary.total_cpu_time_ns.unwrap())
    }

    fn used(&self) -> Duration {
        self.ended.map(|ended| ended.user + ended.system).unwrap()
    }

    /// Checks that a time by the sampling clocks is within some percent and milliseconds of the kernel's CPU
    /// time. The clocks may be ahead by the time for which the hypervisor took CPUs away, because they
    /// continue during that time.
    fn assert_close(&self, found: Duration, used: Duration, percent: u32, what: &str) {
        let allowed = used * percent / 100 + Duration::from_millis(5);
        let within = used.saturating_sub(allowed)..=used + allowed + self.stolen;
        assert!(within.contains(&found), "{what}: {found:?} for {used:?}, {:?} stolen", self.stolen);
    }

    fn lost(&self) -> u64 {
        self.events
            .iter()
            .map(|event| if let EventKind::Lost { records } = event.kind { records } else { 0 })
            .sum()
    }
}

/// Opens the events. Prints a message if the machine refuses all of them.
fn open(target: RecordingTarget, options: &Options) -> Option<Perf> {
    match Perf::open(target, options) {
        Ok(perf) => Some(perf),
        Err(error @ OpenError::Refused { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Takes all events, and checks that none arrives after the time for which records were reported complete.
fn events_of(recording: &mut PerfRecording) -> Vec<Event> {
    let mut all = Vec::new();
    let mut complete_before = Timestamp(0);
    for chunk in recording {
        let next = chunk.complete_before();
        let mut events = Vec::new();
        assert_eq!(chunk.decode(&mut events), 0, "a record was not understood");
        assert!(events.iter().all(|event| event.time >= complete_before), "an event came too late");
        assert!(next >= complete_before);
        complete_before = next;
        // A slice of the recorder's memory must not be kept for the whole recording.
        all.extend(events.into_iter().map(without_stack));
    }
    all
}

fn without_stack(mut event: Event) -> Event {
    if let EventKind::Sample(Sample { user: UserStack::Copied { stack, .. }, .. }) = &mut event.kind {
        *stack = bytes::Bytes::new();
    }
    event
}

fn record_with(script: &str, options: &Options) -> Option<TestRecording> {
    let argv = ["sh", "-c", script].map(Into::into);
    let child = prepare(&Command::from_words(argv).unwrap()).unwrap();
    let before = stolen();
    let perf = open(RecordingTarget::Child(child.pid()), options)?;
    let outcome = perf.outcome().clone();
    let mut recording = perf.record().unwrap();
    let running = child.start().unwrap();
    let events = events_of(&mut recording);
    let summary = recording.finish();
    let ended = running.wait().ok();
    Some(TestRecording { events, outcome, summary, ended, stolen: stolen().saturating_sub(before) })
}

fn record(script: &str) -> Option<TestRecording> {
    record_with(script, &Options::default())
}

/// How long the hypervisor has taken CPUs away that had work, in the kernel's count of hundredths of a second
/// (`steal` in `proc_stat(5)`).
fn stolen() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = text.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
    Duration::from_millis(10 * ticks.unwrap_or(0))
}

#[test]
fn samples_and_counts_tell_the_cpu_time_used() {
    let Some(recorded) = record(WORK) else { return };
    assert_eq!(recorded.summary.reason, EndReason::Exited);
    assert_eq!(recorded.lost(), 0);
    let total = recorded.total();
    recorded.assert_close(total, recorded.used(), 2, "total");
    if recorded.outcome.coverage == Coverage::Threads {
        recorded.assert_close(recorded.counted(), recorded.used(), 2, "counted by thread");
    }
    let expected = if recorded.outcome.kernel { recorded.used() } else { recorded.ended.unwrap().user };
    recorded.assert_close(recorded.sampled(), expected, 10, "sampled");
}

#[test]
fn kernel_time_is_counted_if_it_is_not_sampled() {
    let Some(recorded) = record("dd if=/dev/zero of=/dev/null bs=64k count=30000 2>/dev/null") else {
        return;
    };
    let total = recorded.total();
    recorded.assert_close(total, recorded.used(), 5, "total");
    let in_kernel = recorded.samples().filter(|(_, sample)| sample.in_kernel).count();
    if recorded.outcome.kernel {
        assert!(in_kernel > 0, "dd works in the kernel");
        recorded.assert_close(recorded.sampled(), recorded.used(), 20, "sampled");
    } else {
        assert_eq!(in_kernel, 0);
        assert!(recorded.samples().all(|(_, sample)| sample.kernel_stack.is_empty()));
        if recorded.outcome.coverage == Coverage::Threads {
            recorded.assert_close(recorded.counted(), recorded.used(), 5, "counted by thread");
        }
    }
}

#[test]
fn children_are_recorded_and_distinguished() {
    let script = format!("for n in 1 2 3; do ({WORK}) & done; wait");
    let Some(recorded) = record(&script) else { return };
    let processes: BTreeSet<u32> = recorded.samples().map(|(_, sample)| sample.pid.0).collect();
    assert!(processes.len() >= 3, "{processes:?}");
    let forks = recorded.events.iter().filter(|event| matches!(event.kind, EventKind::Fork { .. })).count();
    assert_eq!(forks, 3);
    recorded.assert_close(recorded.total(), recorded.used(), 2, "total");
}

#[test]
fn exec_gives_name_and_mappings_before_samples() {
    let Some(recorded) = record(&format!("exec sh -c '{WORK}'")) else { return };
    let names =
        |event: &&Event| matches!(&event.kind, EventKind::Name { name, exec: true, .. } if name == "sh");
    assert_eq!(recorded.events.iter().filter(names).count(), 2);
    // In the kernel, a sample may occur while exec replaces the program.
    let in_user_code = recorded.samples().filter(|(_, sample)| !sample.in_kernel);
    let first_sample = in_user_code.map(|(event, _)| event.time).min().unwrap();
    let mapped = recorded.events.iter().any(|event| match &event.kind {
        EventKind::Map(mapping) => event.time < first_sample && mapping.path.ends_with("sh"),
        _ => false,
    });
    assert!(mapped, "no mapping of the program before its first sample");
}

#[test]
fn a_stack_is_copied_with_its_registers() {
    let argv = ["sh", "-c", WORK].map(Into::into);
    let child = prepare(&Command::from_words(argv).unwrap()).unwrap();
    let Some(perf) = open(RecordingTarget::Child(child.pid()), &Options::default()) else { return };
    let mut recording = perf.record().unwrap();
    let running = child.start().unwrap();
    let (mut events, mut copies) = (Vec::new(), 0);
    for chunk in &mut recording {
        chunk.decode(&mut events);
        for event in events.drain(..) {
            let EventKind::Sample(Sample {
                in_kernel, user: UserStack::Copied { stack, limited, .. }, ..
            }) = event.kind
            else {
                continue;
            };
            // While exec replaces a program, it has no stack.
            if in_kernel && stack.is_empty() {
                continue;
            }
            assert!(stack.len() > 64, "{} bytes", stack.len());
            assert!(!limited || stack.len() >= 16 << 10, "a shallow stack fits: {} bytes", stack.len());
            copies += 1;
        }
    }
    running.wait().unwrap();
    assert!(copies > 10);
}

#[test]
fn a_recording_ends_when_it_is_stopped() {
    let child = prepare(&Command::from_words(["sleep", "1000"].map(Into::into)).unwrap()).unwrap();
    let Some(perf) = open(RecordingTarget::Child(child.pid()), &Options::default()) else { return };
    let mut recording = perf.record().unwrap();
    let stop = recording.stop_handle();
    let running = child.start().unwrap();
    let stopper = std::thread::spawn(move || stop.stop());
    events_of(&mut recording);
    stopper.join().unwrap();
    assert_eq!(recording.finish().reason, EndReason::Stopped);
    running.signaller().send(9).unwrap();
    running.wait().unwrap();
}

#[test]
fn a_recording_ends_when_its_time_is_over() {
    let options = Options { duration: Some(Duration::from_millis(200)), ..Options::default() };
    let child = prepare(&Command::from_words(["sleep", "1000"].map(Into::into)).unwrap()).unwrap();
    let Some(perf) = open(RecordingTarget::Child(child.pid()), &options) else { return };
    let began = now();
    let mut recording = perf.record().unwrap();
    let running = child.start().unwrap();
    events_of(&mut recording);
    assert!(now().0 - began.0 >= 200_000_000);
    assert_eq!(recording.finish().reason, EndReason::Duration);
    running.signaller().send(9).unwrap();
    running.wait().unwrap();
}

/// A few samples would stay in the rings until the end: nothing else wakes the reader while the process is
/// stopped.
#[test]
fn few_samples_are_handed_over_if_requested() {
    let options = Options {
        duration: Some(Duration::from_secs(30)),
        hand_over_every: Some(Duration::from_millis(20)),
        ..Options::default()
    };
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; kill -STOP $$";
    let child = prepare(&Command::from_words(["sh", "-c", script].map(Into::into)).unwrap()).unwrap();
    let Some(perf) = open(RecordingTarget::Child(child.pid()), &options) else { return };
    let began = now();
    let mut recording = perf.record().unwrap();
    let running = child.start().unwrap();
    let mut events = Vec::new();
    let has_samples = |events: &[Event]| events.iter().any(|it| matches!(it.kind, EventKind::Sample(_)));
    while !has_samples(&events) {
        let Some(chunk) = recording.next() else { break };
        chunk.decode(&mut events);
    }
    assert!(has_samples(&events) && now().0 - began.0 < 15_000_000_000);
    running.signaller().send(9).unwrap();
    running.wait().unwrap();
}

/// A running process that is killed at the end.
struct Other(Child);

impl Other {
    fn new(script: &str) -> Self {
        let mut command = std::process::Command::new("sh");
        Self(command.args(["-c", script]).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_process_is_attached_to() {
    let mut other = Other::new("while :; do :; done");
    let pid = Pid(other.0.id());
    let Some(perf) = open(RecordingTarget::Attach(vec![pid]), &Options::default()) else { return };
    let mut recording = perf.record().unwrap();
    let mut events = Vec::new();
    let is_sample = |event: &Event| matches!(event.kind, EventKind::Sample(_));
    for chunk in &mut recording {
        chunk.decode(&mut events);
        if events.iter().filter(|event| is_sample(event)).count() >= 20 {
            other.0.kill().unwrap();
            break;
        }
    }
    events.extend(events_of(&mut recording));
    assert_eq!(recording.finish().reason, EndReason::Exited);
    let named = |event: &Event| matches!(&event.kind, EventKind::Name { pid: named, .. } if *named == pid);
    let mapped = |event: &Event| matches!(&event.kind, EventKind::Map(map) if map.path.contains("libc"));
    assert!(events.iter().any(named));
    assert!(events.iter().any(mapped), "an executable mapping that was there before");
}

#[test]
fn a_process_that_does_not_exist_is_an_error() {
    let mut gone = Other::new("exit");
    let pid = Pid(gone.0.id());
    gone.0.wait().unwrap();
    match Perf::open(RecordingTarget::Attach(vec![pid]), &Options::default()) {
        Err(error @ OpenError::NoSuchProcess { .. }) => {
            assert_eq!(error.to_string(), format!("there is no process {}", pid.0));
        }
        Err(OpenError::Refused { source, .. }) => eprintln!("skipped: {source}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rate_beyond_the_kernels_is_lowered() {
    let options = Options { rate_hz: u32::MAX, ..Options::default() };
    let child = prepare(&Command::from_words(["true".into()]).unwrap()).unwrap();
    let Some(perf) = open(RecordingTarget::Child(child.pid()), &options) else { return };
    let outcome = perf.outcome();
    assert!(outcome.rate_hz < u32::MAX);
    let notice = outcome.notices.iter().map(ToString::to_string).find(|notice| notice.contains("rate"));
    assert!(notice.unwrap().contains(&format!("to {} Hz", outcome.rate_hz)));
}

#[test]
fn at_ten_times_the_rate_nothing_is_lost() {
    let options = Options { rate_hz: 10_000, ..Options::default() };
    let Some(recorded) = record_with(WORK, &options) else { return };
    let small = |notice: &Notice| matches!(notice, Notice::SmallerRings { .. } | Notice::SharedRings);
    if recorded.outcome.notices.iter().any(small) {
        eprintln!("skipped: other recordings hold the locked memory of this user");
        return;
    }
    assert_eq!(recorded.lost(), 0);
    let expected = if recorded.outcome.kernel { recorded.used() } else { recorded.ended.unwrap().user };
    recorded.assert_close(recorded.sampled(), expected, 10, "sampled");
}

#[test]
fn nothing_of_the_recorder_appears() {
    let Some(recorded) = record(WORK) else { return };
    let own = std::process::id();
    assert!(recorded.samples().all(|(_, sample)| sample.pid.0 != own));
}
