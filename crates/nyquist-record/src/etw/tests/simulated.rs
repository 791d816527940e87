//! A session without a system: it delivers what a script says.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nyquist_convert::event::{Event, EventKind, MappedFile, Mapping, Pid, Sample, SampleState, Tid};
use nyquist_convert::event::{Timestamp, UserStack};
use nyquist_etw::{Guid, PointerSize};
use nyquist_object::{Avma, FileOffset};

use crate::etw::denied::EtwDenied;
use crate::etw::recorder::EventDecoder;
use crate::etw::session::{EtwSystem, EventDelivery, SessionLosses, SessionSettings, TraceSession};
use crate::etw::sink::EventSink;

/// When recordings begin.
pub(super) const BEGAN: u64 = 1_000_000_000;
/// How much later it is at each look at the clock, and at one that waits for a delivery that never ends.
const LOOK_NS: u64 = 1_000_000;
const LONG_LOOK_NS: u64 = 1_000_000_000;

/// The simulated types of events: a process was started or has ended, an image was loaded, a CPU was sampled.
const START: u8 = 1;
const END: u8 = 2;
const IMAGE: u8 = 10;
const SAMPLE: u8 = 46;

/// An event of the simulated kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedEvent {
    kind: u8,
    pid: u32,
    other: u32,
    time: u64,
}

pub(super) fn event(kind: u8, pid: u32, other: u32, time: u64) -> SimulatedEvent {
    SimulatedEvent { kind, pid, other, time }
}

pub(super) fn process(pid: u32, parent: u32, time: u64) -> SimulatedEvent {
    event(START, pid, parent, time)
}

pub(super) fn image(pid: u32, time: u64) -> SimulatedEvent {
    event(IMAGE, pid, 0, time)
}

pub(super) fn sample(pid: u32, time: u64) -> SimulatedEvent {
    event(SAMPLE, pid, 0, time)
}

/// What happens after the first events were delivered.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScriptStep {
    /// The named processes end.
    EndNamed,
    /// A process ends.
    End(u32),
    /// The end of the recording was requested.
    Stop,
    /// Time passes.
    Wait(Duration),
    /// So much is lost in all.
    Lose(SessionLosses),
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own, or one thing that happened")]
struct ScriptState {
    first: Vec<SimulatedEvent>,
    after_stop: Vec<SimulatedEvent>,
    steps: Vec<ScriptStep>,
    refused: Option<&'static str>,
    never_ends: bool,
    holds_samples: bool,
    running: Vec<u32>,
    fails: bool,
    runs: bool,
    stops: usize,
    lost: SessionLosses,
    now: u64,
    is_stopped: bool,
    have_named_ended: bool,
    ended: Vec<u32>,
    /// Notifies the delivery that the session has stopped.
    stopped: Option<Sender<()>>,
}

/// The script, and what came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(Arc<Mutex<ScriptState>>);

impl Script {
    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap()
    }

    pub(super) fn deliver<const N: usize>(&self, events: [SimulatedEvent; N]) {
        self.lock().first.extend(events);
    }

    pub(super) fn deliver_after_stop<const N: usize>(&self, events: [SimulatedEvent; N]) {
        self.lock().after_stop.extend(events);
    }

    pub(super) fn then(&self, step: ScriptStep) {
        self.lock().steps.push(step);
    }

    pub(super) fn refuse(&self, step: &'static str) {
        self.lock().refused = Some(step);
    }

    pub(super) fn run_already(&self, pids: &[u32]) {
        self.lock().running.extend(pids);
    }

    /// Samples wait for their stacks until the end.
    pub(super) fn hold_samples(&self) {
        self.lock().holds_samples = true;
    }

    pub(super) fn never_end(&self) {
        self.lock().never_ends = true;
    }

    pub(super) fn fail_delivery(&self) {
        self.lock().fails = true;
    }

    pub(super) fn lose(&self, lost: SessionLosses) {
        self.lock().lost = lost;
    }

    pub(super) fn runs(&self) -> bool {
        self.lock().runs
    }

    pub(super) fn stops(&self) -> usize {
        self.lock().stops
    }

    fn check(&self, step: &str) -> Result<(), EtwDenied> {
        if self.lock().refused == Some(step) { Err(EtwDenied::NotAdministrator) } else { Ok(()) }
    }

    /// Takes the steps of the script. It is called when the first events were delivered.
    fn proceed(&self) {
        let mut state = self.lock();
        for step in std::mem::take(&mut state.steps) {
            match step {
                ScriptStep::EndNamed => state.have_named_ended = true,
                ScriptStep::End(pid) => state.ended.push(pid),
                ScriptStep::Stop => state.is_stopped = true,
                ScriptStep::Wait(time) => state.now += time.as_nanos() as u64,
                ScriptStep::Lose(lost) => state.lost = lost,
            }
        }
    }
}

/// The session.
#[derive(Debug)]
pub(super) struct SimulatedSession(Script);

impl SimulatedSession {
    pub(super) fn of(script: &Script) -> Self {
        Self(script.clone())
    }
}

impl TraceSession for SimulatedSession {
    type Delivery = SimulatedDelivery;

    fn start(&mut self, _: &SessionSettings) -> Result<(), EtwDenied> {
        self.0.check("start")?;
        self.0.lock().runs = true;
        Ok(())
    }

    fn events(&mut self, sink: EventSink) -> Result<SimulatedDelivery, EtwDenied> {
        self.0.check("events")?;
        let (sender, stopped) = channel();
        self.0.lock().stopped = Some(sender);
        Ok(SimulatedDelivery { script: self.0.clone(), sink, stopped })
    }

    fn sample(&mut self, settings: &SessionSettings) -> Result<u64, EtwDenied> {
        self.0.check("sample").map(|()| settings.interval_ns)
    }

    fn lost(&mut self) -> SessionLosses {
        self.0.lock().lost
    }

    fn stop(&mut self) -> SessionLosses {
        let mut state = self.0.lock();
        if std::mem::take(&mut state.runs) {
            state.stops += 1;
        }
        if !state.never_ends {
            state.stopped = None;
        }
        state.lost
    }
}

impl Drop for SimulatedSession {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The delivery of its events.
#[derive(Debug)]
pub(super) struct SimulatedDelivery {
    script: Script,
    sink: EventSink,
    stopped: Receiver<()>,
}

impl SimulatedDelivery {
    fn deliver(&mut self, events: Vec<SimulatedEvent>) {
        for made in events {
            let payload = [made.pid.to_le_bytes(), made.other.to_le_bytes()].concat();
            self.sink.push(&nyquist_etw::Event {
                provider: Guid(1),
                opcode: made.kind,
                version: 2,
                pointer_size: PointerSize::Eight,
                process: None,
                thread: None,
                time: made.time,
                cpu: 3,
                payload: &payload,
            });
        }
        self.sink.flush();
    }
}

impl EventDelivery for SimulatedDelivery {
    fn run(mut self) -> Result<(), EtwDenied> {
        let first = std::mem::take(&mut self.script.lock().first);
        self.deliver(first);
        if self.script.lock().fails {
            let source = std::io::ErrorKind::BrokenPipe.into();
            return Err(EtwDenied::System { what: "the events cannot be read", source });
        }
        self.script.proceed();
        // The other end is dropped when the session stops.
        let _ = self.stopped.recv();
        let pending = std::mem::take(&mut self.script.lock().after_stop);
        self.deliver(pending);
        Ok(())
    }
}

/// The machine. Its clock advances at each look.
#[derive(Debug)]
pub(super) struct TestMachine(Script);

impl TestMachine {
    pub(super) fn of(script: &Script) -> Self {
        script.lock().now = BEGAN - LOOK_NS;
        Self(script.clone())
    }
}

impl EtwSystem for TestMachine {
    fn now(&self) -> u64 {
        let mut state = self.0.lock();
        let waits_in_vain = state.never_ends && state.is_stopped;
        state.now += if waits_in_vain { LONG_LOOK_NS } else { LOOK_NS };
        state.now
    }

    fn is_stopped(&self) -> bool {
        self.0.lock().is_stopped
    }

    fn family(&mut self) -> Vec<u32> {
        self.0.lock().running.clone()
    }

    fn have_named_ended(&mut self) -> bool {
        self.0.lock().have_named_ended
    }

    fn lives(&mut self, pid: u32) -> bool {
        !self.0.lock().ended.contains(&pid)
    }
}

/// Decodes the simulated events.
#[derive(Debug)]
pub(super) struct TestDecoder {
    holds_samples: bool,
    held: Vec<Event>,
}

impl TestDecoder {
    pub(super) fn of(script: &Script) -> Self {
        Self { holds_samples: script.lock().holds_samples, held: Vec::new() }
    }
}

impl EventDecoder for TestDecoder {
    fn push(&mut self, event: &nyquist_etw::Event<'_>, out: &mut Vec<Event>) {
        let number = |at: usize| event.payload[at..at + 4].try_into().map(u32::from_le_bytes).unwrap();
        let (pid, tid, other) = (Pid(number(0)), Tid(number(0)), number(4));
        let kind = match event.opcode {
            START => EventKind::Fork { pid, tid, parent_pid: Pid(other), parent_tid: Tid(other) },
            END => EventKind::Exit { pid, tid },
            IMAGE => EventKind::Map(Mapping {
                pid: Some(pid),
                start: Avma(1 << 20),
                len: 4096,
                offset: FileOffset(0),
                path: "a.dll".to_owned(),
                identity: MappedFile::Unknown,
            }),
            _ => EventKind::Sample(sample_of(pid, tid)),
        };
        let is_held = self.holds_samples && event.opcode == SAMPLE;
        let events = if is_held { &mut self.held } else { out };
        events.push(Event { time: Timestamp(event.time), cpu: Some(event.cpu.into()), kind });
    }

    fn complete_before(&self) -> Timestamp {
        self.held.iter().map(|event| event.time).min().unwrap_or(Timestamp(u64::MAX))
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        out.append(&mut self.held);
    }
}

fn sample_of(pid: Pid, tid: Tid) -> Sample {
    Sample {
        pid,
        tid,
        in_kernel: false,
        state: SampleState::Clocked,
        period_ns: 1_000_000,
        cpu_time_ns: None,
        counts_anew: false,
        kernel_stack: Vec::new(),
        user: UserStack::Walked(vec![Avma(7)]),
    }
}
