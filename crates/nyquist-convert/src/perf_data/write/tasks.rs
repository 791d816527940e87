//! The events of a written recording, by time: forks, names, samples and ends of threads.

use nyquist_profile::{ProcessIndex, Profile, Thread};
use rustc_hash::FxHashSet;

/// An event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskEvent<'a> {
    /// In nanoseconds since the profile's zero.
    pub(super) time: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) kind: TaskEventKind<'a>,
}

/// The kind of event. Events of the same time are written in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskEventKind<'a> {
    /// It is forked.
    Fork {
        /// The process and thread that it was forked from.
        parent: (u32, u32),
    },
    /// It takes a name.
    Name(&'a str),
    /// Its process has mapped all its files.
    Mappings(ProcessIndex),
    /// It is sampled: the indexes of the thread and of the sample.
    Sample(u32, u32),
    /// It ends.
    End,
}

impl TaskEventKind<'_> {
    fn rank(self) -> u8 {
        match self {
            Self::Fork { .. } => 0,
            Self::Name(_) => 1,
            Self::Mappings(_) => 2,
            Self::Sample(..) => 3,
            Self::End => 4,
        }
    }
}

/// Everything that happens, in order. A sample takes 40 bytes. Samples of the rows of CPUs are left out,
/// because they are copies.
pub(super) fn task_events(profile: &Profile) -> Vec<TaskEvent<'_>> {
    let mut numbers = Numbers::default();
    let processes: Vec<_> = (0..profile.processes().len())
        .map(ProcessIndex::from_index)
        .map(|index| (index, profile.process(index)))
        .filter(|(_, process)| !process.is_of_cpus())
        .collect();
    let pids: Vec<(ProcessIndex, u32)> =
        processes.iter().map(|(index, process)| (*index, numbers.take(&process.pid))).collect();
    let mut tasks = Vec::new();
    for (index, pid) in pids {
        add_process(profile, (index, pid), &mut numbers, &mut tasks);
    }
    tasks.sort_by_key(|task| (task.time, task.kind.rank()));
    tasks
}

fn add_process<'a>(
    profile: &'a Profile,
    (index, pid): (ProcessIndex, u32),
    numbers: &mut Numbers,
    tasks: &mut Vec<TaskEvent<'a>>,
) {
    let process = profile.process(index);
    let at = |time, tid, kind| TaskEvent { time, pid, tid, kind };
    if process.start > 0 {
        // Its parent is not known.
        tasks.push(at(process.start, pid, TaskEventKind::Fork { parent: (0, 0) }));
    }
    tasks.push(at(process.start, pid, TaskEventKind::Name(&process.name)));
    tasks.push(at(process.start, pid, TaskEventKind::Mappings(index)));
    let mut has_first = false;
    for (place, thread) in profile.threads().iter().enumerate().filter(|(_, thread)| thread.process == index)
    {
        let is_first = !has_first && (thread.is_main || thread.tid == process.pid);
        has_first |= is_first;
        let tid = if is_first { pid } else { numbers.take(&thread.tid) };
        let start = thread.start.max(process.start);
        if tid != pid {
            tasks.push(at(start, tid, TaskEventKind::Fork { parent: (pid, pid) }));
            tasks.push(at(start, tid, TaskEventKind::Name(&thread.name)));
        }
        tasks.extend(samples(thread, place).map(|(time, kind)| at(time.max(start), tid, kind)));
        tasks.extend(thread.end.or(process.end).map(|end| at(end.max(start), tid, TaskEventKind::End)));
    }
    if !has_first {
        tasks.extend(process.end.map(|end| at(end, pid, TaskEventKind::End)));
    }
}

fn samples(thread: &Thread, place: usize) -> impl Iterator<Item = (u64, TaskEventKind<'static>)> {
    let samples = thread.samples.iter().enumerate().filter(|(_, sample)| sample.weight > 0);
    samples.map(move |(at, sample)| (sample.time, TaskEventKind::Sample(place as u32, at as u32)))
}

/// The numbers of processes and threads, each used once.
#[derive(Default)]
struct Numbers {
    taken: FxHashSet<u32>,
    next: u32,
}

impl Numbers {
    /// The number that an id begins with (`77.1` is the second process of the number 77), or the next free
    /// one.
    fn take(&mut self, id: &str) -> u32 {
        /// Linux has no numbers as large as this (`PID_MAX_LIMIT`).
        const FIRST_MADE_UP: u32 = 1 << 22;
        let digits = id.split('.').next().unwrap_or_default();
        if let Some(number) = digits.parse().ok().filter(|number| (1..FIRST_MADE_UP).contains(number))
            && self.taken.insert(number)
        {
            return number;
        }
        self.next += 1;
        FIRST_MADE_UP.saturating_add(self.next)
    }
}
