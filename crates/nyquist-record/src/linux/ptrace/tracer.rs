//! The tracing thread. It waits for events of the traced threads, samples them periodically, and sends the
//! samples on.

use std::collections::HashMap;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use nyquist_convert::event::{EventKind, Pid, Tid};

use super::attaching::Attaching;
use super::maps::{Maps, MapsReading};
use super::outcome::{Notice, OpenError};
use super::privileges::Privileges;
use super::stop_polling::StopPolling;
use super::subject::TracedTarget;
use super::tracee::{Tracee, Tracees};
use crate::Chunk;
use crate::chunk_builder::ChunkBuilder;
use crate::linux::proc;
use crate::linux::signal_stacks::SignalStacks;
use crate::linux::stop::EndReason;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::job_control::Suspension;
use crate::linux::sys::poll::PollSet;
use crate::linux::sys::process::Preference;
use crate::linux::sys::ptrace::{self, WaitMode};
use crate::linux::sys::ticker::Ticker;
use crate::pace::{HoldSummary, StopBudget, StopDurations, Ticks};

/// How often the samples are sent on, and mappings and names are read.
const BETWEEN_CHUNKS_NS: u64 = 50_000_000;
/// How long to wait at the end for threads with a pending stop request. If such a thread is left with the
/// request, its system call is interrupted. On busy CPUs, some time passes until all threads have run.
const LAST_STOPS_NS: u64 = 500_000_000;
/// How long each sample is followed by a reading of the mappings, after a change of file-backed code. The
/// times of mapping changes are only as precise as the interval between two readings. Libraries that replace
/// each other may do so many times in one interval.
const WATCHED_NS: u64 = 1_000_000_000;
/// How often to check, while nothing happens, whether the recording is to begin.
const BETWEEN_QUESTIONS_NS: u64 = 2_000_000;
/// The most threads that are resumed before the other duties are checked.
const MAX_RESUMED_AT_ONCE: usize = 64;
/// The largest copy of the stack of a waiting thread.
pub(super) const MAX_COPY_BYTES: usize = 512 << 10;

/// What to trace, and how.
pub(super) struct TracePlan {
    pub(super) target: TracedTarget,
    pub(super) interval_ns: u64,
    pub(super) duration: Option<Duration>,
    pub(super) cpus: usize,
    /// The maximum size of a stack copy, in bytes.
    pub(super) most_copied: usize,
    /// Whether to record what threads wait for.
    pub(super) wait_reasons: bool,
    pub(super) stop: Arc<OwnedFd>,
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) attaching: Arc<Attaching>,
    pub(super) signal_stacks: Arc<SignalStacks>,
    /// Whether nothing is to be sampled at present.
    pub(super) paused: Arc<AtomicBool>,
    /// The command's file, if it is known that the command loses its file's privileges.
    pub(super) loses_privileges: Option<PathBuf>,
}

/// The tracer's result when it has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct TracerResult {
    pub(crate) reason: Option<EndReason>,
    pub(crate) total_cpu_time_ns: u64,
    pub(crate) holds: HoldSummary,
    /// Whether traced processes live on.
    pub(crate) left_running: bool,
    /// The programs that lost privileges, except the command.
    pub(crate) lost_privileges: Vec<PathBuf>,
}

/// A traced process.
#[derive(Debug, Default)]
pub(super) struct TracedProcess {
    pub(super) maps: Maps,
    /// When the mappings were last read.
    pub(super) looked_at: u64,
    /// Whether it was sampled since then.
    pub(super) has_samples: bool,
    /// How often it was sampled since its birth or its last exec.
    pub(super) samples: u64,
    /// Until when each sample is followed by a reading of the mappings.
    pub(super) watched_until: u64,
    /// Whether it has unmapped file-backed code. By the next reading, another file may be mapped where a
    /// sample was.
    pub(super) files_go: bool,
}

/// The state of the tracing thread.
pub(super) struct Tracer {
    pub(super) target: TracedTarget,
    pub(super) interval_ns: u64,
    duration: Option<Duration>,
    /// The maximum size of a stack copy, in bytes.
    pub(super) most_copied: usize,
    pub(super) wait_reasons: bool,
    stop: Arc<OwnedFd>,
    pub(super) attaching: Arc<Attaching>,
    pub(super) signal_stacks: Arc<SignalStacks>,
    pub(super) tasks: Tracees,
    pub(super) processes: HashMap<u32, TracedProcess>,
    pub(super) out: ChunkBuilder,
    pub(super) budget: StopBudget,
    pub(super) holds: StopDurations,
    pub(super) stop_polling: StopPolling,
    pub(super) ticks: Ticks,
    pub(super) ticker: Ticker,
    pub(super) suspension: Suspension,
    /// The threads of a turn; kept to reuse its memory.
    pub(super) tids: Vec<u32>,
    /// When the turn began; `None` if its time was not random.
    pub(super) turn: Option<u64>,
    /// The buffer for the stack of a waiting thread.
    pub(super) scratch: Box<[u8]>,
    /// The CPU time of threads that have ended.
    pub(super) ended_cpu_ns: u64,
    pub(super) privileges: Privileges,
    /// Whether the recorded process has not called exec for the command yet.
    pub(super) awaits_exec: bool,
    /// The live processes whose end ends the recording.
    pub(super) live: Vec<u32>,
    /// Whether all of them have ended.
    pub(super) has_ended: bool,
    sent_at: u64,
    pause: PauseSwitch,
}

/// Whether nothing is to be sampled at present.
struct PauseSwitch {
    /// Another thread changes it.
    requested: Arc<AtomicBool>,
    /// As it was in the last round.
    is_on: bool,
}

impl PauseSwitch {
    /// The state that is requested, and whether it has changed since the last call.
    fn turn(&mut self) -> (bool, bool) {
        let requested = self.requested.load(Ordering::Relaxed);
        (requested, requested != std::mem::replace(&mut self.is_on, requested))
    }
}

impl Tracer {
    /// Makes the calling thread the tracer of all threads of the target. Returns a notice of what was left
    /// out.
    pub(super) fn seize(plan: TracePlan, chunks: Sender<Chunk>) -> Result<(Self, Option<Notice>), OpenError> {
        let now = monotonic_ns();
        let ticker =
            Ticker::new().map_err(|source| OpenError::System { what: "no timer can be made", source })?;
        let suspension = Suspension::take_over()
            .map_err(|source| OpenError::System { what: "SIGTSTP cannot be taken over", source })?;
        let awaits_exec = matches!(plan.target, TracedTarget::Child(_));
        let mut tracer = Self {
            target: plan.target,
            interval_ns: plan.interval_ns,
            duration: plan.duration,
            most_copied: plan.most_copied,
            wait_reasons: plan.wait_reasons,
            stop: plan.stop,
            attaching: plan.attaching,
            signal_stacks: plan.signal_stacks,
            tasks: Tracees::default(),
            processes: HashMap::new(),
            out: ChunkBuilder::new(chunks, plan.waiting),
            budget: StopBudget::new(plan.cpus, now),
            holds: StopDurations::new(),
            stop_polling: StopPolling::default(),
            ticks: Ticks::new(plan.interval_ns, now),
            ticker,
            suspension,
            tids: Vec::new(),
            turn: None,
            scratch: vec![0; MAX_COPY_BYTES].into(),
            ended_cpu_ns: 0,
            privileges: Privileges::new(plan.loses_privileges),
            awaits_exec,
            live: Vec::new(),
            has_ended: false,
            sent_at: now,
            pause: PauseSwitch { requested: plan.paused, is_on: false },
        };
        let left_out = tracer.seize_all()?;
        Ok((tracer, left_out))
    }

    /// Resumes threads that stop until the recording is to begin. Returns whether it is to begin.
    pub(super) fn wait_for(&mut self, begin: &Receiver<()>) -> bool {
        self.ticker.set(monotonic_ns(), BETWEEN_QUESTIONS_NS);
        while !self.has_ended {
            match begin.try_recv() {
                Ok(()) => return true,
                Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => {
                    self.handle_next();
                }
            }
        }
        begin.recv().is_ok()
    }

    /// Waits until a thread stops or ends, or the clock ticks, and handles it. Returns whether the clock
    /// ticked.
    fn handle_next(&mut self) -> bool {
        match ptrace::wait(WaitMode::UntilSignal) {
            Ok(Some(waited)) => {
                self.handle(waited);
                self.handle_all();
                return false;
            }
            Ok(None) => return true,
            // No traced thread is left.
            Err(_) => self.has_ended = true,
        }
        false
    }

    /// Resumes all threads that have stopped by now. The kernel returns the same thread first again and
    /// again, so one that stops often would delay the others beyond their turn.
    pub(super) fn handle_all(&mut self) {
        for _ in 0..MAX_RESUMED_AT_ONCE {
            match ptrace::wait(WaitMode::Poll) {
                Ok(Some(waited)) if !self.has_ended => self.handle(waited),
                _ => return,
            }
        }
    }

    /// Traces until the recording ends.
    pub(super) fn run(mut self) -> TracerResult {
        // A thread stays stopped until this one gets the CPU.
        let _preference = Preference::of_this_thread();
        let now = monotonic_ns();
        if let TracedTarget::Attach(_) = self.target {
            self.describe_all(now);
        }
        let deadline = self.duration.map(|duration| now.saturating_add(duration.as_nanos() as u64));
        self.ticks = Ticks::new(self.interval_ns, now);
        self.set_ticker();
        let reason = loop {
            let by_clock = self.handle_next();
            if monotonic_ns() >= self.ticks.next_ns() {
                if !self.pauses() {
                    self.sample_all(by_clock);
                }
                self.ticks.advance(monotonic_ns());
                self.set_ticker();
            }
            self.send_from_time_to_time();
            self.stop_after_the_command();
            if let Some(reason) = self.end_reason(deadline) {
                break reason;
            }
        };
        self.finish(reason)
    }

    /// A tick that comes before the thread waits would be lost, so another one follows soon.
    fn set_ticker(&self) {
        self.ticker.set(self.ticks.next_ns(), self.interval_ns.clamp(100_000, BETWEEN_CHUNKS_NS));
    }

    fn end_reason(&self, deadline: Option<u64>) -> Option<EndReason> {
        if self.has_ended {
            return Some(EndReason::Exited);
        }
        if deadline.is_some_and(|deadline| monotonic_ns() >= deadline) {
            return Some(EndReason::Duration);
        }
        let mut poll = PollSet::default();
        let stop = poll.add(self.stop.as_raw_fd());
        (poll.wait(Some(0)).is_ok() && poll.ready(stop).readable).then_some(EndReason::Stopped)
    }

    /// Records the names and mappings of processes that run already.
    fn describe_all(&mut self, now: u64) {
        let tids: Vec<u32> = self.tasks.all().iter().map(|task| task.tid).collect();
        for tid in tids {
            self.refresh_name(tid, now);
        }
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            // A process whose main thread has ended still goes by that thread's name.
            let is_unknown = self.tasks.get(pid).is_none();
            if let Some(name) = is_unknown.then(|| proc::name(Pid(pid), Tid(pid))).flatten() {
                self.out.push(now, name);
            }
            self.refresh_maps(pid, true);
        }
    }

    /// Whether nothing is to be sampled in this round. The time of a pause counts for no thread.
    fn pauses(&mut self) -> bool {
        let (is_paused, has_changed) = self.pause.turn();
        if has_changed {
            let now = monotonic_ns();
            let tids: Vec<u32> = self.tasks.all().iter().map(|task| task.tid).collect();
            for tid in tids {
                if is_paused {
                    self.report_waiting(tid, now);
                } else if let Some(task) = self.tasks.get_mut(tid) {
                    task.leave_out_until(now);
                }
            }
        }
        is_paused
    }

    fn send_from_time_to_time(&mut self) {
        let now = monotonic_ns();
        if now.saturating_sub(self.sent_at) >= BETWEEN_CHUNKS_NS {
            self.send(now);
        }
    }

    /// Sends the samples on. If mappings have changed since the last time, they come before the samples.
    pub(super) fn send(&mut self, now: u64) {
        let sampled = self.processes.iter().filter(|(_, process)| process.has_samples);
        let pids: Vec<u32> = sampled.map(|(pid, _)| *pid).collect();
        for pid in pids {
            self.refresh_maps(pid, false);
        }
        let ran = self.tasks.all().iter().filter(|task| task.has_run);
        let tids: Vec<u32> = ran.map(|task| task.tid).collect();
        for tid in tids {
            self.refresh_name(tid, now);
        }
        self.out.send(now);
        self.out.prepare();
        self.sent_at = now;
    }

    /// Reads the mappings of a process if they may have changed.
    pub(super) fn refresh_maps(&mut self, pid: u32, always: bool) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let seen = if always { process.maps.refresh(pid) } else { process.maps.refresh_if_touched(pid) };
        self.note_maps(pid, &seen);
    }

    /// Records what a reading of a process's mappings has found. A new mapping gets the time just after the
    /// previous reading, and a removed one gets the time of this reading. The samples in between may be in
    /// either.
    pub(super) fn note_maps(&mut self, pid: u32, seen: &MapsReading) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let changed_at = self.sent_at.max(process.looked_at);
        let changes = process.maps.accept(pid, seen);
        process.has_samples = false;
        process.looked_at = seen.at;
        if changes.files_come_and_go {
            process.watched_until = seen.at + WATCHED_NS;
            process.files_go |= changes.files_go;
        }
        for change in changes.new {
            self.out.push(changed_at, change);
        }
        for change in changes.gone {
            self.out.push(seen.at, change);
        }
    }

    /// Records the name of a thread if it is new.
    pub(super) fn refresh_name(&mut self, tid: u32, now: u64) {
        let Some(task) = self.tasks.get_mut(tid) else { return };
        task.has_run = false;
        if let Some(named) = proc::name(Pid(task.pid), Tid(tid))
            && let EventKind::Name { name, .. } = &named
            && *name != task.name
        {
            task.name.clone_from(name);
            self.out.push(now, named);
        }
    }

    /// Waits for the threads with a pending stop request, but not for long.
    pub(super) fn handle_last_stops(&mut self) {
        let deadline = monotonic_ns() + LAST_STOPS_NS;
        while self.tasks.all().iter().any(|task| task.requested.is_some()) && monotonic_ns() < deadline {
            match ptrace::wait(WaitMode::UntilSignal) {
                Ok(Some(waited)) if !(waited.ended && self.target.is_child(waited.tid)) => {
                    self.handle(waited);
                }
                Ok(None) => {}
                _ => break,
            }
        }
    }

    /// Sends the remaining samples and detaches from all threads.
    fn finish(mut self, reason: EndReason) -> TracerResult {
        self.handle_last_stops();
        let now = monotonic_ns();
        let tids: Vec<u32> = self.tasks.all().iter().map(|task| task.tid).collect();
        for tid in tids {
            self.report_total(tid, now);
            self.count_last_hold(tid);
        }
        self.send(now);
        let live: u64 = self.tasks.all().iter().map(Tracee::used_ns).sum();
        TracerResult {
            reason: Some(reason),
            total_cpu_time_ns: self.ended_cpu_ns + live,
            holds: self.holds.summary(&self.budget),
            left_running: self.tasks.all().iter().any(|task| !proc::has_ended(task.pid)),
            lost_privileges: self.privileges.lost,
        }
    }
}
