//! The final CPU time of threads whose end no record reports: threads whose events were opened rather than
//! inherited, and threads that live on.
//!
//! The kernel writes the count of an inherited counter when its thread ends. An opened counter can be read,
//! but its count includes the thread's children.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nyquist_convert::event::{Event, EventKind, Pid, Tid, Timestamp};

use super::ended_threads::{EndedThread, EndedThreads};
use super::events::{CpuTimeCounter, OpenedEvents};
use crate::linux::proc;

/// What is known of the threads' CPU time while they are recorded.
#[derive(Debug)]
pub(crate) struct ThreadTotals {
    counted: CountedThreads,
    /// The processes of the threads that existed at the beginning.
    processes: HashMap<u32, Pid>,
    unrecorded: Mutex<UnrecordedTime>,
    /// Whether all CPUs are recorded. The scheduler only knows the total of a thread on all CPUs.
    on_all_cpus: bool,
}

/// The scheduler's CPU times of threads, in nanoseconds, while they were not recorded.
#[derive(Debug, Default)]
struct UnrecordedTime {
    /// Before the recording, and in its pauses.
    before: HashMap<u32, u64>,
    /// What the threads had used when the current pause began, if there is one.
    at_pause: Option<HashMap<u32, u64>>,
}

impl UnrecordedTime {
    /// The recorded part of a thread's CPU time.
    fn recorded(&self, tid: u32, time: u64) -> u64 {
        let until = |at_pause: &HashMap<u32, u64>| at_pause.get(&tid).copied().unwrap_or_default();
        let time = self.at_pause.as_ref().map_or(time, |at_pause| time.min(until(at_pause)));
        time.saturating_sub(self.before.get(&tid).copied().unwrap_or_default())
    }

    /// The pause is over, and the threads have used this much by now.
    fn resume(&mut self, now: &HashMap<u32, u64>) {
        let Some(at_pause) = self.at_pause.take() else { return };
        for (tid, time) in now {
            let used = time.saturating_sub(at_pause.get(tid).copied().unwrap_or_default());
            let before = self.before.entry(*tid).or_default();
            *before = before.saturating_add(used);
        }
    }
}

/// The threads whose CPU time is counted one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CountedThreads {
    /// Those of processes and of all their descendants.
    Families(Vec<Pid>),
    /// One thread of a process.
    One(Pid, Tid),
    /// Threads are not counted one by one.
    None,
}

impl CountedThreads {
    /// The processes that have these threads now.
    fn processes(&self) -> Vec<Pid> {
        match self {
            Self::Families(roots) => proc::families(roots).into_iter().map(Pid).collect(),
            Self::One(pid, _) => vec![*pid],
            Self::None => Vec::new(),
        }
    }

    /// The processes that the user named.
    fn roots(&self) -> &[Pid] {
        match self {
            Self::Families(roots) => roots,
            Self::One(pid, _) => std::slice::from_ref(pid),
            Self::None => &[],
        }
    }

    /// The CPU time of each of these threads of some processes.
    fn all_cpu_times(&self, pids: &[Pid]) -> HashMap<u32, u64> {
        pids.iter().flat_map(|pid| self.cpu_times(*pid)).collect()
    }

    /// The CPU time of each of these threads of a process.
    fn cpu_times(&self, pid: Pid) -> Vec<(u32, u64)> {
        let mut times = proc::cpu_times(pid);
        if let Self::One(_, one) = self {
            times.retain(|(tid, _)| *tid == one.0);
        }
        times
    }
}

/// The CPU time of a living thread since it was recorded, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveThread {
    pid: Pid,
    tid: u32,
    cpu_time_ns: u64,
}

impl LiveThread {
    /// The thread's CPU time on all CPUs together.
    pub(crate) fn total(self, time: Timestamp) -> Event {
        let Self { pid, tid, cpu_time_ns } = self;
        Event { time, cpu: None, kind: EventKind::Total { pid, tid: Tid(tid), cpu_time_ns } }
    }
}

impl ThreadTotals {
    /// Reads the initial state, before the events are enabled.
    pub(crate) fn new(counted: &CountedThreads, on_all_cpus: bool) -> Self {
        let family = counted.processes();
        let before = counted.all_cpu_times(&family);
        let processes = family.iter().flat_map(|pid| {
            let threads = proc::threads(*pid).unwrap_or_default();
            threads.into_iter().map(move |tid| (tid, *pid))
        });
        let unrecorded = Mutex::new(UnrecordedTime { before, at_pause: None });
        Self { processes: processes.collect(), counted: counted.clone(), unrecorded, on_all_cpus }
    }

    /// The CPU time of the threads that live now, if it can be determined. Call it before the events are
    /// disabled.
    pub(crate) fn of_live(&self, events: &OpenedEvents) -> Vec<LiveThread> {
        // Reading every process takes longer than all else at the end of a recording.
        if self.counted == CountedThreads::None || !self.on_all_cpus || events.all_have_ended() {
            return Vec::new();
        }
        let family = self.counted.processes();
        let threads = family
            .into_iter()
            .flat_map(|pid| self.counted.cpu_times(pid).into_iter().map(move |(tid, time)| (pid, tid, time)));
        let unrecorded = self.unrecorded();
        let used = |(pid, tid, time): (Pid, u32, u64)| LiveThread {
            pid,
            tid,
            cpu_time_ns: unrecorded.recorded(tid, time),
        };
        threads.map(used).collect()
    }

    /// The CPU time of ended threads with opened events, by CPU, and that of the living ones on all CPUs
    /// together. If such a thread has ended while others live, its time is what the others have not used.
    pub(crate) fn finish(
        &self,
        events: &OpenedEvents,
        ended_threads: &EndedThreads,
        live: Vec<LiveThread>,
        time: Timestamp,
    ) -> Vec<Event> {
        let mut totals = Vec::new();
        let mut scheduled = self.scheduled_times();
        let mut holders = Holders::new(&self.processes, ended_threads);
        for counter in events.counters().iter().filter(|counter| events.has_ended(counter)) {
            let Some(counted) = own_time(events, ended_threads, counter) else { continue };
            let Some((pid, tid)) = holders.of(counter.tid) else { continue };
            let is_of_others = ended_threads.lack_counts() || events.has_lost_counts(counter);
            let Some(own) = certain_time(counted, scheduled.get_mut(&tid), is_of_others) else { continue };
            let kind = EventKind::Total { pid, tid: Tid(tid), cpu_time_ns: own };
            totals.push(Event { time, cpu: Some(counter.cpu), kind });
        }
        // A process that has ended and was not reaped is still in `/proc`.
        let has_ended = |tid| events.counters().iter().any(|it| it.tid == tid && events.has_ended(it));
        let live: Vec<LiveThread> = live.into_iter().filter(|thread| !has_ended(thread.tid)).collect();
        let rest =
            if ended_threads.lack_counts() { None } else { uncounted_time(events, ended_threads, &live) };
        let holder = rest.and_then(|rest| holders.unused(rest));
        totals.extend(live.into_iter().chain(holder).map(|thread| thread.total(time)));
        totals
    }

    /// The scheduler's CPU times of the processes' threads, in nanoseconds. The main thread of a launched
    /// command that has ended is still there. If the kernel dropped records of ended threads, this limit
    /// keeps their time from being counted for the main thread.
    fn scheduled_times(&self) -> HashMap<u32, u64> {
        let unrecorded = self.unrecorded();
        let times = self.counted.roots().iter().flat_map(|pid| self.counted.cpu_times(*pid));
        times.map(|(tid, time)| (tid, unrecorded.recorded(tid, time))).collect()
    }

    /// Leaves out what the threads use from now on. Call it when the events are disabled.
    pub(crate) fn pause(&self) {
        self.unrecorded().at_pause = Some(self.counted.all_cpu_times(&self.counted.processes()));
    }

    /// The pause is over. Call it before the events are enabled.
    pub(crate) fn resume(&self) {
        let now = self.counted.all_cpu_times(&self.counted.processes());
        self.unrecorded().resume(&now);
    }

    fn unrecorded(&self) -> MutexGuard<'_, UnrecordedTime> {
        self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads that held opened counters when they ended.
struct Holders<'a> {
    /// The processes of the threads that the counters were opened for.
    processes: &'a HashMap<u32, Pid>,
    /// The threads without records of their counts that no counter was assigned to.
    unused: Vec<EndedThread>,
    /// The holders by the threads that their counters were opened for.
    found: HashMap<u32, (Pid, u32)>,
}

impl<'a> Holders<'a> {
    fn new(processes: &'a HashMap<u32, Pid>, ended: &EndedThreads) -> Self {
        Self { processes, unused: ended.uncounted().collect(), found: HashMap::new() }
    }

    /// The thread that held the counters of a thread. It is that thread, unless its end has records of counts.
    /// Then the kernel has exchanged its counters, most likely for those of a thread of its own process.
    fn of(&mut self, opened_for: u32) -> Option<(Pid, u32)> {
        if let Some(holder) = self.found.get(&opened_for) {
            return Some(*holder);
        }
        let pid = *self.processes.get(&opened_for)?;
        let place = |is: &dyn Fn(&EndedThread) -> bool| self.unused.iter().position(is);
        let place = place(&|thread| thread.tid == opened_for)
            .or_else(|| place(&|thread| thread.pid == pid && !self.processes.contains_key(&thread.tid)))
            .or_else(|| place(&|thread| !self.processes.contains_key(&thread.tid)));
        let holder = place.map_or((pid, opened_for), |place| {
            let thread = self.unused.swap_remove(place);
            (thread.pid, thread.tid)
        });
        self.found.insert(opened_for, holder);
        Some(holder)
    }

    /// The only thread that ended without records of its counts while others of its counters live on, with its
    /// share of this time. It cannot have used more than it has lived.
    fn unused(self, rest_ns: u64) -> Option<LiveThread> {
        let [EndedThread { pid, tid, lifetime_ns }] = self.unused[..] else { return None };
        let cpu_time_ns = rest_ns.min(lifetime_ns.unwrap_or(u64::MAX));
        (cpu_time_ns > 0).then_some(LiveThread { pid, tid, cpu_time_ns })
    }
}

/// The time of living counters that neither living threads have used nor those whose ends have records; `None`
/// if that of the living is not known.
fn uncounted_time(events: &OpenedEvents, ended: &EndedThreads, live: &[LiveThread]) -> Option<u64> {
    let counters = || events.counters().iter().filter(|counter| !events.has_ended(counter));
    let counted = counters().try_fold(0, |sum: u64, it| Some(sum.saturating_add(events.read(it).ok()?)))?;
    let known = counters().map(|counter| ended.count(counter.id)).fold(0, u64::saturating_add);
    let used = live.iter().map(|thread| thread.cpu_time_ns).fold(known, u64::saturating_add);
    (!live.is_empty()).then(|| counted.saturating_sub(used))
}

/// The part of a count that is certainly the time of the counter's holder. If records of the ends of others may
/// be lost, the count may include their time: then only what the scheduler knows of the holder is certain, and the
/// converter shows what is left as time without a sample. `scheduled_ns` is less what this takes of it.
fn certain_time(counted_ns: u64, scheduled_ns: Option<&mut u64>, may_be_of_others: bool) -> Option<u64> {
    let Some(left) = scheduled_ns else {
        return (!may_be_of_others).then_some(counted_ns);
    };
    let own = counted_ns.min(*left);
    *left -= own;
    Some(own)
}

/// The CPU time of a counter's own thread, if none of its descendants lives.
fn own_time(events: &OpenedEvents, ended: &EndedThreads, counter: &CpuTimeCounter) -> Option<u64> {
    let all = events.read(counter).ok()?;
    let of_children = ended.count(counter.id);
    Some(all.saturating_sub(of_children)).filter(|own| *own > 0)
}

#[cfg(test)]
mod tests {
    use nyquist_perf::abi::record;

    use super::super::ended_threads::tests::{count, no_thread, task};
    use super::*;

    /// Thread 1 was there before, 2 was born in the recording, 3 in its pause.
    #[test]
    fn time_of_a_pause_is_left_out() {
        let mut unrecorded = UnrecordedTime {
            before: HashMap::from([(1, 10)]),
            at_pause: Some(HashMap::from([(1, 30), (2, 5)])),
        };
        let recorded = |it: &UnrecordedTime, times: [u64; 3]| {
            [1, 2, 3].map(|tid| it.recorded(tid, times[tid as usize - 1]))
        };
        assert_eq!(recorded(&unrecorded, [40, 25, 7]), [20, 5, 0], "in the pause");
        unrecorded.resume(&HashMap::from([(1, 50), (2, 65), (3, 8)]));
        assert_eq!(recorded(&unrecorded, [51, 66, 9]), [21, 6, 1]);
    }

    /// Thread 7 was attached to. The kernel has exchanged its counters for those of 9.
    fn after_an_exchange() -> EndedThreads {
        let mut ended = no_thread();
        task(&mut ended, record::FORK, 8, 100);
        task(&mut ended, record::FORK, 9, 100);
        count(&mut ended, 8, 50, 3);
        task(&mut ended, record::EXIT, 8, 900);
        task(&mut ended, record::EXIT, 9, 400);
        ended
    }

    #[test]
    fn time_belongs_to_the_last_holder_of_a_counter() {
        let processes = HashMap::from([(7, Pid(7))]);
        let mut ended = after_an_exchange();
        count(&mut ended, 7, 50, 5);
        task(&mut ended, record::EXIT, 7, 950);
        let mut holders = Holders::new(&processes, &ended);
        assert_eq!(
            [holders.of(7), holders.of(7), holders.of(6)],
            [Some((Pid(7), 9)), Some((Pid(7), 9)), None]
        );
        assert!(holders.unused(1).is_none());

        let mut ended = no_thread();
        task(&mut ended, record::EXIT, 7, 950);
        assert_eq!(Holders::new(&processes, &ended).of(7), Some((Pid(7), 7)), "nothing was exchanged");
        assert_eq!(Holders::new(&processes, &no_thread()).of(7), Some((Pid(7), 7)), "no end was reported");
    }

    #[test]
    fn time_of_others_is_not_the_holders() {
        let mut scheduled = 10;
        assert_eq!(certain_time(7, Some(&mut scheduled), true), Some(7));
        assert_eq!((certain_time(7, Some(&mut scheduled), false), scheduled), (Some(3), 0));
        assert_eq!([true, false].map(|may_be| certain_time(7, None, may_be)), [None, Some(7)]);

        let mut ended = after_an_exchange();
        assert!(!ended.lack_counts());
        ended.note_lost();
        assert!(ended.lack_counts());
    }

    #[test]
    fn a_holder_has_no_more_time_than_its_lifetime() {
        let processes = HashMap::from([(7, Pid(7))]);
        let ended = after_an_exchange();
        let used = |rest| Holders::new(&processes, &ended).unused(rest).map(|it| (it.tid, it.cpu_time_ns));
        assert_eq!([used(0), used(200), used(2000)], [None, Some((9, 200)), Some((9, 300))]);
    }
}
