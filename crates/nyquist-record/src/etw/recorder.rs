//! The recording thread: it takes a session's events, keeps those of the recorded processes, and sends them on.
//! It ends the session when the recording ends, and takes what is still delivered then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use nyquist_convert::event::{Event, EventKind, Timestamp};

use super::denied::EtwDenied;
use super::event_filter::EventFilter;
use super::record_format;
use super::session::{EtwSystem, EventDelivery, SessionLosses, SessionSettings, TraceSession};
use super::sink::{EventSink, SunkEvents};
use crate::Chunk;
use crate::chunk_builder::ChunkBuilder;
use crate::end_reason::EndReason;
use crate::recording_thread::RecordingThread;

/// How often the recorder looks whether the recording ends.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often it asks for losses, in nanoseconds.
const BETWEEN_LOSSES_NS: u64 = 1_000_000_000;
/// How much later than others the buffer of a CPU can be delivered. The kernel delivers buffers that are not
/// full once a second. Within a buffer, events are in the order of their times.
const MAX_DELIVERY_DELAY_NS: u64 = 2_000_000_000;
/// How long the recorder waits for the events of a session that has stopped.
const MAX_DELIVERY_WAIT_NS: u64 = 10_000_000_000;

/// Converts the kernel's events to those of the event model.
pub(crate) trait EventDecoder: Send + 'static {
    /// Appends the events that one event of the kernel completes.
    fn push(&mut self, event: &nyquist_etw::Event<'_>, out: &mut Vec<Event>);
    /// The time before which all events were appended, as far as events have come.
    fn complete_before(&self) -> Timestamp;
    /// Appends the events that wait for others, because no others come.
    fn finish(&mut self, out: &mut Vec<Event>);
}

/// What is recorded.
#[derive(Clone, Debug)]
pub(crate) struct EtwPlan {
    /// The processes that are named; none if all of the machine are recorded.
    pub(crate) named: Vec<u32>,
    /// How long, if not until the end of the named processes.
    pub(crate) duration: Option<Duration>,
    pub(crate) settings: SessionSettings,
}

/// A session that has started.
#[derive(Debug)]
pub(crate) struct StartedSession<S: TraceSession, M> {
    session: S,
    delivery: S::Delivery,
    machine: M,
    plan: EtwPlan,
    events: SunkEvents,
    interval_ns: u64,
}

/// The result of a recording that has ended.
#[derive(Debug, Default)]
pub(crate) struct SessionResult {
    pub(crate) reason: Option<EndReason>,
    /// Whether descendants of the named processes live on.
    pub(crate) left_running: bool,
    /// The buffers of events that did not reach the recorder.
    pub(crate) lost_buffers: u64,
    /// Whether the events ended before the recording.
    pub(crate) was_cut: bool,
    /// Why the events could not be delivered, if that is so.
    pub(crate) failure: Option<EtwDenied>,
}

impl<S: TraceSession, M: EtwSystem> StartedSession<S, M> {
    /// Starts the session. If that fails, nothing is left of it.
    pub(crate) fn open(mut session: S, machine: M, plan: EtwPlan) -> Result<Self, EtwDenied> {
        let (sink, events) = EventSink::new();
        session.start(&plan.settings)?;
        let opened = session.events(sink);
        let sampled = opened.and_then(|delivery| Ok((delivery, session.sample(&plan.settings)?)));
        match sampled {
            Ok((delivery, interval_ns)) => Ok(Self { session, delivery, machine, plan, events, interval_ns }),
            Err(denied) => {
                session.stop();
                Err(denied)
            }
        }
    }

    /// The time between two samples of a CPU, in nanoseconds.
    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Starts the threads. `prefer` is called on each first, and its result is dropped at the end.
    pub(crate) fn record<P, D: EventDecoder>(
        self,
        decoder: D,
        prefer: impl Fn() -> P + Send + Clone + 'static,
    ) -> io::Result<RecordingThread<SessionResult>> {
        let Self { mut session, delivery, machine, plan, events, .. } = self;
        let prefer_here = prefer.clone();
        let deliver = move || {
            let _preference = prefer_here();
            delivery.run()
        };
        let delivering = Builder::new().name("nyquist-etw".into()).spawn(deliver).inspect_err(|_| {
            session.stop();
        })?;
        let (sender, chunks) = channel();
        let waiting = Arc::<AtomicUsize>::default();
        let recorder =
            EtwRecorder::new((session, machine), decoder, plan, events, (sender, Arc::clone(&waiting)));
        RecordingThread::start("nyquist-events", (chunks, waiting), move || {
            let _preference = prefer();
            recorder.run(delivering)
        })
    }
}

/// The state of the recording thread.
#[derive(Debug)]
struct EtwRecorder<S, M, D> {
    session: S,
    machine: M,
    decoder: D,
    plan: EtwPlan,
    retained: EventFilter,
    events: SunkEvents,
    out: ChunkBuilder,
    began: u64,
    /// The time of the latest event.
    latest: u64,
    next_losses: u64,
    /// When the recording ended.
    ended: u64,
    /// The lost events that were reported.
    reported: u64,
    /// Decoded events; kept to reuse its memory.
    decoded: Vec<Event>,
}

/// Whether more events can come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    Pending,
    Complete,
}

impl<S: TraceSession, M: EtwSystem, D: EventDecoder> EtwRecorder<S, M, D> {
    fn new(
        (session, mut machine): (S, M),
        decoder: D,
        plan: EtwPlan,
        events: SunkEvents,
        (chunks, waiting): (Sender<Chunk>, Arc<AtomicUsize>),
    ) -> Self {
        let began = machine.now();
        // The session runs, so that it reports the processes that start from now on.
        let mut retained =
            if plan.named.is_empty() { EventFilter::All } else { EventFilter::family(machine.family()) };
        retained.begin(Timestamp(began));
        Self {
            session,
            machine,
            decoder,
            plan,
            retained,
            events,
            out: ChunkBuilder::new(chunks, waiting),
            began,
            latest: began,
            next_losses: began.saturating_add(BETWEEN_LOSSES_NS),
            ended: u64::MAX,
            reported: 0,
            decoded: Vec::new(),
        }
    }

    /// Records until the recording ends.
    fn run(mut self, delivering: JoinHandle<Result<(), EtwDenied>>) -> SessionResult {
        let (reason, was_cut) = loop {
            if self.take_events() == DeliveryState::Complete {
                break (EndReason::Stopped, true);
            }
            if let Some(reason) = self.end_reason() {
                break (reason, false);
            }
            self.report_losses_if_due();
        };
        self.ended = self.machine.now();
        let losses = self.session.stop();
        let deadline = self.ended.saturating_add(MAX_DELIVERY_WAIT_NS);
        let mut delivered = if was_cut { DeliveryState::Complete } else { DeliveryState::Pending };
        while delivered == DeliveryState::Pending && self.machine.now() < deadline {
            delivered = self.take_events();
        }
        // If the system never ends the delivery, its thread ends with the program.
        let result = (delivered == DeliveryState::Complete).then(|| delivering.join());
        let failure = result.and_then(Result::ok).and_then(Result::err);
        self.finish(losses);
        let left_running = self.are_descendants_alive();
        SessionResult { reason: Some(reason), left_running, lost_buffers: losses.buffers, was_cut, failure }
    }

    /// Waits for events for a while, and sends them on.
    fn take_events(&mut self) -> DeliveryState {
        match self.events.buffers.recv_timeout(POLL_INTERVAL) {
            Ok(buffer) => {
                self.decode(&buffer);
                DeliveryState::Pending
            }
            Err(RecvTimeoutError::Timeout) => DeliveryState::Pending,
            Err(RecvTimeoutError::Disconnected) => DeliveryState::Complete,
        }
    }

    fn decode(&mut self, buffer: &Bytes) {
        let mut decoded = std::mem::take(&mut self.decoded);
        let mut rest = &buffer[..];
        while let Some((event, behind)) = record_format::read(rest) {
            self.decoder.push(&event, &mut decoded);
            rest = behind;
        }
        self.keep(&mut decoded);
        self.decoded = decoded;
        self.out.send(self.complete_before());
    }

    /// Every event that is older than this has been delivered.
    fn complete_before(&self) -> u64 {
        let delivered = self.latest.saturating_sub(MAX_DELIVERY_DELAY_NS);
        delivered.min(self.decoder.complete_before().0).max(self.began)
    }

    /// Passes on the events of the recorded processes.
    fn keep(&mut self, decoded: &mut Vec<Event>) {
        for mut event in decoded.drain(..) {
            let time = event.time.0;
            // Events of others show as well that nothing older comes, while the recorded processes are idle.
            self.latest = self.latest.max(time);
            if !self.retained.keeps(&event) {
                continue;
            }
            // What ran before the recording or after it is only described.
            if !(self.began..=self.ended).contains(&time) && is_of_running_thread(&event.kind) {
                continue;
            }
            event.time.0 = time.max(self.began);
            self.out.push_event(event);
        }
    }

    /// Why the recording ends now, if it does.
    fn end_reason(&mut self) -> Option<EndReason> {
        if self.machine.have_named_ended() {
            return Some(EndReason::Exited);
        }
        if self.machine.is_stopped() {
            return Some(EndReason::Stopped);
        }
        let duration = self.plan.duration?;
        let ends = self.began.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        (self.machine.now() >= ends).then_some(EndReason::Duration)
    }

    fn report_losses_if_due(&mut self) {
        let now = self.machine.now();
        if now >= self.next_losses {
            self.next_losses = now.saturating_add(BETWEEN_LOSSES_NS);
            let losses = self.session.lost();
            self.report(losses, now);
        }
    }

    /// Reports the events that were lost since the last report.
    fn report(&mut self, losses: SessionLosses, now: u64) {
        let lost = losses.events.saturating_add(self.events.dropped.load(Ordering::Relaxed));
        let records = lost.saturating_sub(self.reported);
        if records > 0 {
            self.reported = lost;
            self.out.push(now, EventKind::Lost { records });
        }
    }

    /// Sends the last events.
    fn finish(&mut self, losses: SessionLosses) {
        let mut decoded = std::mem::take(&mut self.decoded);
        self.decoder.finish(&mut decoded);
        self.keep(&mut decoded);
        self.report(losses, self.ended);
        self.out.send(self.latest.max(self.ended).saturating_add(1));
    }

    fn are_descendants_alive(&mut self) -> bool {
        let Self { retained, machine, plan, .. } = self;
        let mut descendants = retained.processes().filter(|pid| !plan.named.contains(&pid.0));
        descendants.any(|pid| machine.lives(pid.0))
    }
}

/// Whether an event shows a thread that runs or waits.
fn is_of_running_thread(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Sample(_)
            | EventKind::SwitchOut(_)
            | EventKind::SwitchIn { .. }
            | EventKind::Descheduled { .. }
            | EventKind::SwitchStack(_)
            | EventKind::Waiting(_)
            | EventKind::Wakeup(_)
    )
}
