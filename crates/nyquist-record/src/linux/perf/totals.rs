//! The final CPU time of threads whose end no record reports: threads whose events were opened rather than
//! inherited, and threads that live on.
//!
//! The kernel writes the count of an inherited counter when its thread ends. An opened counter can be read,
//! but its count includes the thread's children.

use std::collections::{HashMap, HashSet};

use nyquist_convert::event::{Event, EventKind, Pid, Tid, Timestamp};
use nyquist_perf::{RecordBody, RecordFormat, parse_record};

use super::events::{CpuTimeCounter, OpenedEvents};
use crate::linux::proc;

/// What is known of the threads' CPU time while they are recorded.
#[derive(Debug)]
pub(crate) struct ThreadTotals {
    /// The processes that are recorded with all their descendants; empty if threads are not counted
    /// individually.
    roots: Vec<Pid>,
    /// The processes of the threads that existed at the beginning.
    processes: HashMap<u32, Pid>,
    /// The CPU time of threads before they were recorded.
    before: HashMap<u32, u64>,
    /// Whether all CPUs are recorded. The scheduler only knows the total of a thread on all CPUs.
    on_all_cpus: bool,
}

/// The counts of inherited counters at the end of their threads, from records.
#[derive(Debug)]
pub(crate) struct EndedThreads {
    format: RecordFormat,
    /// By the id of the event that was opened.
    by_counter: HashMap<u64, u64>,
}

impl EndedThreads {
    /// No thread has ended so far.
    pub(crate) fn new(format: RecordFormat) -> Self {
        Self { format, by_counter: HashMap::new() }
    }

    /// Notes a record with the count of an inherited counter.
    pub(crate) fn note(&mut self, read: &[u8]) {
        let Ok(record) = parse_record(read, &self.format) else { return };
        let RecordBody::Read(read) = record.body else { return };
        if let (Some(counter), Some(id)) = (read.counters.iter().last(), record.id.id) {
            *self.by_counter.entry(id).or_default() += counter.value;
        }
    }
}

/// The CPU time of a living thread since it was recorded, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LivingThread {
    pid: Pid,
    tid: u32,
    cpu_time_ns: u64,
}

impl LivingThread {
    /// The thread's CPU time on all CPUs together.
    pub(crate) fn total(self, time: Timestamp) -> Event {
        let Self { pid, tid, cpu_time_ns } = self;
        Event { time, cpu: None, kind: EventKind::Total { pid, tid: Tid(tid), cpu_time_ns } }
    }
}

impl ThreadTotals {
    /// Reads the initial state, before the events are enabled.
    pub(crate) fn new(roots: &[Pid], on_all_cpus: bool) -> Self {
        let family = if roots.is_empty() { Vec::new() } else { proc::families(roots) };
        let before = family.iter().flat_map(|pid| proc::cpu_times(Pid(*pid))).collect();
        let processes = family.iter().flat_map(|pid| {
            let threads = proc::threads(Pid(*pid)).unwrap_or_default();
            threads.into_iter().map(move |tid| (tid, Pid(*pid)))
        });
        Self { processes: processes.collect(), roots: roots.to_vec(), before, on_all_cpus }
    }

    /// The CPU time of the threads that live now, if it can be determined. Call it before the events are
    /// disabled.
    pub(crate) fn of_living(&self, events: &OpenedEvents) -> Vec<LivingThread> {
        // Reading every process takes longer than all else at the end of a recording.
        if self.roots.is_empty() || !self.on_all_cpus || events.all_have_ended() {
            return Vec::new();
        }
        let family = proc::families(&self.roots);
        let threads = family.into_iter().flat_map(|pid| {
            proc::cpu_times(Pid(pid)).into_iter().map(move |(tid, time)| (Pid(pid), tid, time))
        });
        let used = |(pid, tid, time): (Pid, u32, u64)| {
            let before = self.before.get(&tid).copied().unwrap_or_default();
            LivingThread { pid, tid, cpu_time_ns: time.saturating_sub(before) }
        };
        threads.map(used).collect()
    }

    /// The CPU time of ended threads whose events were opened, by CPU, and that of the living ones on all
    /// CPUs together. Omits a thread that has ended while descendants live, because its time cannot be
    /// separated from theirs.
    pub(crate) fn finish(
        &self,
        events: &OpenedEvents,
        ended_threads: &EndedThreads,
        living: Vec<LivingThread>,
        time: Timestamp,
    ) -> Vec<Event> {
        let total = |pid, counter: &CpuTimeCounter, cpu_time_ns| Event {
            time,
            cpu: Some(counter.cpu),
            kind: EventKind::Total { pid, tid: Tid(counter.tid), cpu_time_ns },
        };
        let mut totals = Vec::new();
        let mut ended = HashSet::new();
        let mut scheduled = self.scheduled_times();
        for counter in events.counters().iter().filter(|counter| events.has_ended(counter)) {
            ended.insert(counter.tid);
            let Some(mut own) = own_time(events, ended_threads, counter) else { continue };
            if let Some(left) = scheduled.get_mut(&counter.tid) {
                own = own.min(*left);
                *left -= own;
            }
            let Some(pid) = self.processes.get(&counter.tid) else { continue };
            totals.push(total(*pid, counter, own));
        }
        // A process that has ended and was not reaped is still in `/proc`.
        let living = living.into_iter().filter(|thread| !ended.contains(&thread.tid));
        totals.extend(living.map(|thread| thread.total(time)));
        totals
    }

    /// The scheduler's CPU times of the processes' threads, in nanoseconds. The main thread of a launched
    /// command that has ended is still there. If the kernel dropped records of ended threads, this limit
    /// keeps their time from being counted for the main thread.
    fn scheduled_times(&self) -> HashMap<u32, u64> {
        let before = |tid: u32| self.before.get(&tid).copied().unwrap_or_default();
        let times = self.roots.iter().flat_map(|pid| proc::cpu_times(*pid));
        times.map(|(tid, time)| (tid, time.saturating_sub(before(tid)))).collect()
    }
}

/// The CPU time of a counter's own thread, if none of its descendants lives.
fn own_time(events: &OpenedEvents, ended: &EndedThreads, counter: &CpuTimeCounter) -> Option<u64> {
    let all = events.read(counter).ok()?;
    let of_children = ended.by_counter.get(&counter.id).copied().unwrap_or_default();
    Some(all.saturating_sub(of_children)).filter(|own| *own > 0)
}
