//! The sampling thread. It finds new and ended threads, samples the running ones periodically, and sends the
//! samples on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::Sender;
use std::time::Duration;

use nyquist_convert::event::Pid;

use super::events;
use super::family::ProcessFamily;
use super::process::{LeftOut, SampledProcess};
use super::recorded_thread::RecordedThreads;
use super::refused::RefusedProcesses;
use super::system::{ListedProcess, ListedThread, SamplingDenied, System};
use crate::Chunk;
use crate::chunk_builder::ChunkBuilder;
use crate::end_reason::EndReason;
use crate::pace::{HoldSummary, StopBudget, StopDurations, Ticks};

/// How often the samples are sent on, and the images and names are read.
const BETWEEN_CHUNKS_NS: u64 = 50_000_000;
/// For how long samples are kept back until the images and the made code of their process are read, because events of
/// these would be late after them. The images of a program that begins cannot be read at once.
const MAX_KEPT_BACK_NS: u64 = 500_000_000;

/// The shortest time between two listings of processes and threads, in nanoseconds.
pub(super) const MIN_LISTING_NS: u64 = 10_000_000;

/// What to sample, and how.
#[derive(Debug)]
pub(crate) struct SamplingPlan {
    /// The processes that are named: their end ends the recording.
    pub(crate) pids: Vec<u32>,
    /// Whether the first of them is a program that has not run yet.
    pub(crate) is_new: bool,
    /// This program, which is not sampled.
    pub(crate) own_pid: u32,
    pub(crate) interval_ns: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) cpus: usize,
    /// The maximum size of a stack copy, in bytes.
    pub(crate) most_copied: usize,
}

/// The result of a recording that has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct SamplerResult {
    pub(crate) reason: Option<EndReason>,
    pub(crate) total_cpu_time_ns: u64,
    pub(crate) holds: HoldSummary,
    /// Whether recorded processes live on.
    pub(crate) left_running: bool,
    pub(crate) left_out: Vec<LeftOut>,
}

/// The state of the sampling thread.
#[derive(Debug)]
pub(crate) struct Sampler<S: System> {
    pub(super) system: S,
    pub(super) plan: SamplingPlan,
    pub(super) family: ProcessFamily,
    pub(super) processes: HashMap<u32, SampledProcess<S::Process>>,
    pub(super) tasks: RecordedThreads<S::Thread>,
    pub(super) out: ChunkBuilder,
    pub(super) budget: StopBudget,
    pub(super) holds: StopDurations,
    /// The CPU time of threads that have ended.
    pub(super) ended_cpu_ns: u64,
    pub(super) refused: RefusedProcesses,
    /// Whether a thread or process seems to have ended or to be new, so that the next listing comes earlier.
    pub(super) wants_listing: bool,
    pub(super) next_listing: u64,
    /// When the last listing was complete.
    listed_at: u64,
    pub(super) sent_at: u64,
    /// The last listing; kept to reuse its memory.
    pub(super) listed: Vec<ListedProcess>,
    pub(super) listed_threads: Vec<ListedThread>,
    /// How many rounds in a row were used up by running threads.
    pub(super) rounds_without_waiting: u32,
    /// Whether threads and processes that are found from now on are new.
    pub(super) has_begun: bool,
}

impl<S: System> Sampler<S> {
    /// Opens the processes of the plan and their descendants. An error is of a process that was named.
    pub(crate) fn open(
        mut system: S,
        plan: SamplingPlan,
        chunks: Sender<Chunk>,
        waiting: Arc<AtomicUsize>,
    ) -> Result<Self, (Pid, SamplingDenied)> {
        let now = system.now();
        let mut processes = HashMap::new();
        for pid in &plan.pids {
            let process = system.open_process(*pid).map_err(|denied| (Pid(*pid), denied))?;
            processes.insert(*pid, SampledProcess::new(process));
        }
        let mut sampler = Self {
            family: ProcessFamily::of(plan.pids.iter().copied()),
            budget: StopBudget::new(plan.cpus, now),
            system,
            plan,
            processes,
            tasks: RecordedThreads::default(),
            out: ChunkBuilder::new(chunks, waiting),
            holds: StopDurations::new(),
            ended_cpu_ns: 0,
            refused: RefusedProcesses::default(),
            wants_listing: false,
            next_listing: now,
            listed_at: now,
            sent_at: now,
            listed: Vec::new(),
            listed_threads: Vec::new(),
            rounds_without_waiting: 0,
            has_begun: false,
        };
        sampler.list_processes(now);
        Ok(sampler)
    }

    /// The descendants that cannot be sampled, so far.
    #[cfg(any(windows, target_os = "macos"))]
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.refused.left_out()
    }

    /// Samples until the recording ends.
    pub(crate) fn run(mut self) -> SamplerResult {
        let began = self.system.now();
        self.describe_all(began);
        self.list(began);
        self.has_begun = true;
        let deadline = self.plan.duration.map(|duration| began.saturating_add(duration.as_nanos() as u64));
        let mut ticks = Ticks::new(self.plan.interval_ns, began);
        let reason = loop {
            let next = ticks.next_ns().min(deadline.unwrap_or(u64::MAX));
            let is_stopped = self.system.wait_until(next);
            let now = self.system.now();
            self.list_from_time_to_time(now);
            if now >= ticks.next_ns() {
                self.sample_all();
                ticks.advance(self.system.now());
            }
            self.send_from_time_to_time();
            if self.has_ended() {
                break EndReason::Exited;
            }
            if is_stopped {
                break EndReason::Stopped;
            }
            if deadline.is_some_and(|deadline| self.system.now() >= deadline) {
                break EndReason::Duration;
            }
        };
        self.finish(reason)
    }

    /// Whether all named processes have ended.
    fn has_ended(&mut self) -> bool {
        let Self { system, processes, plan, .. } = self;
        plan.pids.iter().all(|pid| processes.get(pid).is_none_or(|it| system.has_ended(&it.handle)))
    }

    /// Lists processes and threads when that is due. A thread that seems to have ended shortens the pause, and
    /// not more: one that stays listed and can never be suspended would make each look list the machine.
    fn list_from_time_to_time(&mut self, now: u64) {
        let is_requested = self.wants_listing && now >= self.listed_at.saturating_add(MIN_LISTING_NS);
        if now >= self.next_listing || is_requested {
            self.list(now);
            self.listed_at = self.system.now();
        }
    }

    fn send_from_time_to_time(&mut self) {
        let now = self.system.now();
        let waited = now.saturating_sub(self.sent_at);
        let may_wait = waited < MAX_KEPT_BACK_NS;
        let mut sampled = self.processes.values().filter(|process| process.has_samples);
        if waited < BETWEEN_CHUNKS_NS
            || (may_wait && sampled.any(|it| it.made_code.is_sought() && !it.made_code.is_due(now)))
        {
            return;
        }
        self.refresh_sampled_images(now);
        if !may_wait || self.processes.values().all(|process| !process.has_samples) {
            self.refresh_names(now);
            self.send();
        }
    }

    fn refresh_sampled_images(&mut self, now: u64) {
        let sampled = self.processes.iter().filter(|(_, process)| process.has_samples);
        let pids: Vec<u32> = sampled.map(|(pid, _)| *pid).collect();
        for pid in pids {
            self.refresh_images(pid, now);
        }
    }

    /// Reads the images of a process, and records what has changed.
    pub(super) fn refresh_images(&mut self, pid: u32, now: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let images = &process.images;
        let Some((listed, new)) = self.system.modules(&process.handle, &|listed| images.has(listed)) else {
            return;
        };
        let before = process.images.looked_at;
        let of_images = process.images.accept(pid, now, (&listed, new));
        let mut changes = process.made_code.leave_to(&process.images, pid, before);
        changes.extend(of_images);
        if !changes.is_empty() {
            process.calls.clear();
        }
        if process.made_code.is_due(now) {
            let began = self.system.now();
            let found = self.system.made_code(&process.handle, &|address| process.images.end_at(address));
            let ended = self.system.now();
            changes.extend(process.made_code.accept(pid, (began, ended), (found, &process.images)));
        }
        process.has_samples = process.made_code.is_sought();
        for (time, change) in changes {
            // Events before the last chunk would be late.
            self.out.push(time.max(self.sent_at), change);
        }
    }

    /// Records the names of threads that have run and have new ones.
    fn refresh_names(&mut self, now: u64) {
        let Self { system, tasks, out, .. } = self;
        for task in tasks.all_mut() {
            if !std::mem::take(&mut task.has_run) {
                continue;
            }
            // The main thread is called like its program.
            if task.shown_tid == task.pid {
                continue;
            }
            if let Some(name) = system.thread_name(&task.thread).filter(|name| *name != task.name) {
                task.name.clone_from(&name);
                out.push(now, events::name((task.pid, task.shown_tid), name, false));
            }
        }
    }

    /// Sends the samples on.
    pub(super) fn send(&mut self) {
        let now = self.system.now();
        self.out.send(now);
        self.out.prepare();
        self.sent_at = now;
    }

    /// Records the CPU times, and sends the remaining samples.
    fn finish(mut self, reason: EndReason) -> SamplerResult {
        let now = self.system.now();
        self.list(now);
        self.refresh_sampled_images(now);
        self.refresh_names(now);
        for task in self.tasks.remove(|_| true) {
            self.report_total(task, now);
        }
        self.send();
        let Self { system, processes, .. } = &mut self;
        let left_running = processes.values().any(|it| !system.has_ended(&it.handle));
        SamplerResult {
            reason: Some(reason),
            total_cpu_time_ns: self.ended_cpu_ns,
            holds: self.holds.summary(&self.budget),
            left_running,
            left_out: self.refused.left_out(),
        }
    }
}
