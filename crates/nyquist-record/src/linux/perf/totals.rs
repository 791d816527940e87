//! What threads have used in the end, for those whose end no record tells: threads whose events were opened and
//! not inherited, and threads that live on.
//!
//! The kernel writes what an inherited counter has counted when its thread ends. A counter that was opened can be
//! read, but holds what its thread's children have counted too.

use std::collections::{HashMap, HashSet};

use nyquist_convert::event::{Event, EventKind, Pid, Tid, Timestamp};
use nyquist_perf::{Body, RecordFormat, parse_record};

use super::events::{Counter, Events};
use crate::linux::proc;

/// What is known of the threads' CPU time while they are recorded.
#[derive(Debug)]
pub(crate) struct ThreadTotals {
    /// The processes that are recorded with all that descend from them; none where threads are not counted one by one.
    roots: Vec<Pid>,
    /// The processes of the threads that were there at the beginning.
    processes: HashMap<u32, Pid>,
    /// What threads had used before they were recorded.
    before: HashMap<u32, u64>,
    /// Whether all CPUs are recorded. The scheduler knows what a thread has used on all of them together.
    on_all_cpus: bool,
}

/// What inherited counters had counted when their threads ended, as records report.
#[derive(Debug)]
pub(crate) struct EndedThreads {
    format: RecordFormat,
    /// By the number of the event that was opened.
    by_counter: HashMap<u64, u64>,
}

impl EndedThreads {
    /// No thread has ended so far.
    pub(crate) fn new(format: RecordFormat) -> Self {
        Self { format, by_counter: HashMap::new() }
    }

    /// Takes note of a record that says what an inherited counter has counted.
    pub(crate) fn note(&mut self, read: &[u8]) {
        let Ok(record) = parse_record(read, &self.format) else { return };
        let Body::Read(read) = record.body else { return };
        if let (Some(counter), Some(id)) = (read.counters.iter().last(), record.id.id) {
            *self.by_counter.entry(id).or_default() += counter.value;
        }
    }
}

/// What a living thread has used since it was recorded, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Living {
    pid: Pid,
    tid: u32,
    cpu_time_ns: u64,
}

impl ThreadTotals {
    /// Begins with what is there before the events are switched on.
    pub(crate) fn new(roots: &[Pid], on_all_cpus: bool) -> Self {
        let family = if roots.is_empty() { Vec::new() } else { proc::families(roots) };
        let before = family.iter().flat_map(|pid| proc::cpu_times(Pid(*pid))).collect();
        let processes = family.iter().flat_map(|pid| {
            let threads = proc::threads(Pid(*pid)).unwrap_or_default();
            threads.into_iter().map(move |tid| (tid, Pid(*pid)))
        });
        Self { processes: processes.collect(), roots: roots.to_vec(), before, on_all_cpus }
    }

    /// What the threads have used that live at this moment, where that can be told. To be asked before the events are
    /// switched off.
    pub(crate) fn of_living(&self, events: &Events) -> Vec<Living> {
        // A look at every process takes longer than all else at the end of a recording.
        if self.roots.is_empty() || !self.on_all_cpus || events.all_have_ended() {
            return Vec::new();
        }
        let family = proc::families(&self.roots);
        let threads = family.into_iter().flat_map(|pid| {
            proc::cpu_times(Pid(pid)).into_iter().map(move |(tid, time)| (Pid(pid), tid, time))
        });
        let used = |(pid, tid, time): (Pid, u32, u64)| {
            let before = self.before.get(&tid).copied().unwrap_or_default();
            Living { pid, tid, cpu_time_ns: time.saturating_sub(before) }
        };
        threads.map(used).collect()
    }

    /// What the threads have used whose events were opened and who have ended, by CPU, and what the living ones
    /// have used, on all CPUs together. Nothing is said of a thread that has ended while others live that were
    /// born from it: its time cannot be told from theirs.
    pub(crate) fn finish(
        &self,
        events: &Events,
        ended_threads: &EndedThreads,
        living: Vec<Living>,
        time: Timestamp,
    ) -> Vec<Event> {
        let total = |pid, tid, cpu, cpu_time_ns| Event {
            time,
            cpu,
            kind: EventKind::Total { pid, tid: Tid(tid), cpu_time_ns },
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
            totals.push(total(*pid, counter.tid, Some(counter.cpu), own));
        }
        // A process that has ended and was not waited for is still found in `/proc`.
        let living = living.into_iter().filter(|thread| !ended.contains(&thread.tid));
        totals.extend(living.map(|thread| total(thread.pid, thread.tid, None, thread.cpu_time_ns)));
        totals
    }

    /// What the scheduler says that the processes' threads have used, in nanoseconds: of a launched command that has
    /// ended, the main thread is still there. Where the kernel dropped records of threads that ended, this keeps
    /// their time from being taken for the main thread's.
    fn scheduled_times(&self) -> HashMap<u32, u64> {
        let before = |tid: u32| self.before.get(&tid).copied().unwrap_or_default();
        let times = self.roots.iter().flat_map(|pid| proc::cpu_times(*pid));
        times.map(|(tid, time)| (tid, time.saturating_sub(before(tid)))).collect()
    }
}

/// What a counter's own thread has used, where nothing that was born from it lives.
fn own_time(events: &Events, ended: &EndedThreads, counter: &Counter) -> Option<u64> {
    let all = events.read(counter).ok()?;
    let of_children = ended.by_counter.get(&counter.id).copied().unwrap_or_default();
    Some(all.saturating_sub(of_children)).filter(|own| *own > 0)
}
