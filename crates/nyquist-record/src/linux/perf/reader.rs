//! The thread that waits for the rings and for the end of the recording, and drains the rings.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nyquist_convert::event::{Event, Timestamp};

use super::drain_scheduler::DrainScheduler;
use super::event_pace::EventPace;
use super::events::OpenedEvents;
use super::jitter::Jitter;
use super::look_pace::LookPace;
use super::ring_source::RingSource;
use super::sideband_throttle::SidebandThrottle;
use super::totals::ThreadTotals;
use crate::linux::proc;
use crate::linux::stop::EndReason;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::poll::{PollSet, process_descriptor};
use crate::linux::sys::process::Preference;

/// The reader's result when it has ended.
#[derive(Debug)]
pub(crate) struct ReaderEnd {
    pub(crate) reason: EndReason,
    /// Losses and CPU time of threads that no record contains.
    pub(crate) unreported: Vec<Event>,
    /// Whether threads whose events were opened individually lived on when the recording ended.
    pub(crate) threads_live: bool,
}

/// How long to wait for memory to return before the rings are drained again.
const POOL_RETRY_MS: u32 = 2;
/// How often a process or a thread is checked if the kernel has no pidfds of it.
const EXIT_CHECK_MS: u32 = 100;

/// The state of the reading thread.
pub(crate) struct RingReader {
    pub(crate) events: Arc<OpenedEvents>,
    pub(crate) scheduler: DrainScheduler,
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) watched: Watched,
    pub(crate) duration: Option<Duration>,
    /// How often the rings are drained at least.
    pub(crate) look_pace: Option<LookPace>,
    pub(crate) totals: Arc<ThreadTotals>,
    pub(crate) jitter: Option<Jitter>,
    /// Set if sideband records can be read in batches.
    pub(crate) sideband_throttle: Option<SidebandThrottle>,
    /// Set if the periods of additional events follow their rates.
    pub(crate) event_pace: Option<EventPace>,
}

/// What ends the recording by its end.
#[derive(Debug)]
pub(crate) enum Watched {
    /// The end of the last of these processes; nothing if there are none.
    Processes(Vec<u32>),
    /// The end of a thread, which may be that of a process's main thread before the others'.
    Thread(u32),
}

/// The poll indices of what the reader waits for.
struct WaitSet {
    poll: PollSet,
    stop: usize,
    /// What has not ended yet, of what is watched.
    live: Vec<LiveTask>,
    /// For every ring its poll index, and the index of the event in `wakers` that is waited for.
    rings: Vec<(usize, usize)>,
}

/// A process or a thread that is watched.
enum LiveTask {
    /// A process by its pidfd, which must stay open. `place` is its poll index.
    Polled { place: usize, _pidfd: OwnedFd },
    /// A process, if the kernel has no pidfds.
    Process(u32),
    /// Only newer kernels have pidfds of threads.
    Thread(u32),
}

impl LiveTask {
    fn of_process(pid: u32, poll: &mut PollSet) -> Self {
        match process_descriptor(pid) {
            Ok(pidfd) => Self::Polled { place: poll.add(pidfd.as_raw_fd()), _pidfd: pidfd },
            Err(_) => Self::Process(pid),
        }
    }

    fn has_ended(&self, poll: &PollSet) -> bool {
        match self {
            Self::Polled { place, .. } => poll.ready(*place).readable,
            Self::Process(pid) => proc::has_ended(*pid),
            Self::Thread(tid) => proc::thread_has_ended(*tid),
        }
    }
}

impl WaitSet {
    /// How long to wait at most: until the earliest moment (ns) and no longer than the shortest time (ms);
    /// `None` for no limit.
    fn timeout_ms(&self, until: [Option<u64>; 3], at_most: [Option<u32>; 3]) -> Option<u32> {
        let left = until.into_iter().flatten().min();
        let left = left.map(|until| until.saturating_sub(monotonic_ns()).div_ceil(1_000_000) as u32);
        let is_polled = |task: &LiveTask| matches!(task, LiveTask::Polled { .. });
        let check = self.live.iter().any(|task| !is_polled(task)).then_some(EXIT_CHECK_MS);
        at_most.into_iter().chain([left, check]).flatten().min()
    }

    /// Forgets what has ended. Returns whether they were the last ones.
    fn forget_ended(&mut self) -> bool {
        let before = self.live.len();
        let (ended, live) = std::mem::take(&mut self.live)
            .into_iter()
            .partition::<Vec<_>, _>(|task| task.has_ended(&self.poll));
        for task in ended {
            if let LiveTask::Polled { place, .. } = task {
                self.poll.replace(place, None);
            }
        }
        self.live = live;
        before > 0 && self.live.is_empty()
    }
}

impl RingReader {
    /// Drains the rings until the recording ends, then switches the events off and drains what is left.
    pub(crate) fn run(mut self) -> ReaderEnd {
        // A late reader loses samples, and it needs the CPU for a moment only.
        let _preference = Preference::at_once();
        let mut waiting = self.prepare_to_wait();
        let deadline =
            self.duration.map(|duration| monotonic_ns().saturating_add(duration.as_nanos() as u64));
        let reason = loop {
            let change = self.jitter.as_ref().and_then(Jitter::next_ns);
            let periods = self.event_pace.as_ref().map(EventPace::next_ns);
            let until = [deadline, change, periods];
            let batch = self.sideband_throttle.as_ref().and_then(SidebandThrottle::look_every_ms);
            let retry = self.scheduler.are_blocked().then_some(POOL_RETRY_MS);
            let look = self.look_pace.as_ref().map(LookPace::ms);
            let timeout = waiting.timeout_ms(until, [batch, retry, look]);
            // A wait that fails would fail again at once, so the rings are then drained periodically.
            if waiting.poll.wait(timeout).is_err() {
                std::thread::sleep(Duration::from_millis(u64::from(POOL_RETRY_MS)));
            }
            self.scheduler.spread();
            if let Some(jitter) = &mut self.jitter {
                jitter.change(&self.events, || self.scheduler.written(), monotonic_ns());
            }
            if let Some(pace) = &mut self.event_pace {
                pace.change(&self.events, monotonic_ns());
            }
            let ended = end_reason(&mut waiting, deadline);
            if let Some(throttle) = &mut self.sideband_throttle {
                throttle.note_round(throttle.is_in(self.scheduler.rings()), monotonic_ns(), &self.events);
            }
            if let Some(pace) = &mut self.look_pace {
                pace.note_round(self.scheduler.written());
            }
            self.scheduler.round(monotonic_ns());
            self.replace_ended_wakers(&mut waiting);
            if let Some(reason) = ended {
                break reason;
            }
        };
        self.end(reason)
    }

    /// Disables the events, drains the rings, and returns what no record reports.
    fn end(mut self, reason: EndReason) -> ReaderEnd {
        let live = self.totals.of_live(&self.events);
        let threads_live = !self.events.all_have_ended();
        self.events.disable();
        while !self.scheduler.round(monotonic_ns()) {
            std::thread::sleep(Duration::from_millis(u64::from(POOL_RETRY_MS)));
        }
        let now = Timestamp(monotonic_ns());
        let (ended, losses) = self.scheduler.into_reports();
        // Losses come first, because they are a part of the CPU time of threads.
        let mut unreported: Vec<_> = losses.unreported(self.events.lost_by_cpu(), now).collect();
        unreported.extend(losses.unreported_additional(self.events.lost_of_additional_events(), now));
        unreported.extend(self.totals.finish(&self.events, &ended, live, now));
        ReaderEnd { reason, unreported, threads_live }
    }

    fn prepare_to_wait(&self) -> WaitSet {
        let mut poll = PollSet::default();
        let stop = poll.add(self.stop.as_fd().as_raw_fd());
        let live = match &self.watched {
            Watched::Processes(pids) => {
                pids.iter().map(|pid| LiveTask::of_process(*pid, &mut poll)).collect()
            }
            Watched::Thread(tid) => vec![LiveTask::Thread(*tid)],
        };
        let first = |ring: &RingSource| ring.wakers.first().and_then(|waker| self.events.raw_fd(*waker));
        let rings = self.scheduler.rings().map(|ring| (poll.add(first(ring).unwrap_or(-1)), 0)).collect();
        WaitSet { poll, stop, live, rings }
    }

    /// An event whose threads have all ended stays hung up, and would wake the reader without end. Another
    /// event that writes to the same ring replaces it.
    fn replace_ended_wakers(&self, waiting: &mut WaitSet) {
        for (ring, (place, waker)) in self.scheduler.rings().zip(&mut waiting.rings) {
            if waiting.poll.ready(*place).hung_up {
                *waker += 1;
                let next = ring.wakers.get(*waker).and_then(|waker| self.events.raw_fd(*waker));
                waiting.poll.replace(*place, next);
            }
        }
    }
}

fn end_reason(waiting: &mut WaitSet, deadline: Option<u64>) -> Option<EndReason> {
    if waiting.forget_ended() {
        Some(EndReason::Exited)
    } else if waiting.poll.ready(waiting.stop).readable {
        Some(EndReason::Stopped)
    } else if deadline.is_some_and(|deadline| monotonic_ns() >= deadline) {
        Some(EndReason::Duration)
    } else {
        None
    }
}
