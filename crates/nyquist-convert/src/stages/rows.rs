//! Rows of the profile: processes, threads, markers and counters, each made when it is first heard of.

use super::Stages;
use crate::build::row_names;
use crate::event::{Counter, Marker, MarkerTiming, Pid, Tid, Timestamp, Track};
use crate::processes::process::Process;
use crate::processes::thread::Thread;
use nyquist_profile::{self as profile, ProcessIndex, ProfileBuilder, ThreadIndex};

impl Stages {
    /// Whether nothing of a thread is in the profile.
    pub(super) fn is_left_out(&self, (pid, tid): (Pid, Tid)) -> bool {
        self.shape.main_threads_only && pid.0 != tid.0
    }

    pub(super) fn marker(&mut self, now: Timestamp, marker: &Marker) {
        let thread = match &marker.track {
            Track::Thread(tid) if self.is_left_out((marker.pid, *tid)) => return,
            Track::Thread(tid) => self.profile_thread(now, (marker.pid, *tid)),
            Track::Named(name) => {
                let process = self.process_with_thread(now, marker.pid);
                self.markers.track(&mut self.builder, process, name)
            }
        };
        let time = self.profile_time(now);
        let timing = match marker.timing {
            MarkerTiming::Instant => profile::MarkerTiming::Instant(time),
            MarkerTiming::Interval { start } => {
                profile::MarkerTiming::Interval(self.profile_time(start).min(time), time)
            }
            MarkerTiming::IntervalStart => profile::MarkerTiming::IntervalStart(time),
            MarkerTiming::IntervalEnd => profile::MarkerTiming::IntervalEnd(time),
        };
        self.markers.add(&mut self.builder, thread, marker.into(), timing);
    }

    pub(super) fn counter(&mut self, now: Timestamp, counter: &Counter) {
        let process = self.process_with_thread(now, counter.pid);
        let time = self.profile_time(now);
        self.markers.count(&mut self.builder, process, counter, time);
    }

    /// The process of the profile. What it has beside threads is shown with its main thread, so it has one.
    fn process_with_thread(&mut self, now: Timestamp, pid: Pid) -> ProcessIndex {
        let main = self.profile_thread(now, (pid, Tid(pid.0)));
        self.builder.profile().thread(main).process
    }

    /// The thread of the profile, which is made at its first sample or marker.
    pub(super) fn profile_thread(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) -> ThreadIndex {
        let process = self.processes.process(pid, now);
        if let Some(index) = process.threads.get(&tid).and_then(|thread| thread.index) {
            return index;
        }
        let is_new = process.index.is_none();
        self.pool.take_process(process);
        let builder = &mut self.builder;
        let process_index = *process.index.get_or_insert_with(|| {
            builder.add_process(profile::Process { pid: pid.0.to_string(), ..profile::Process::default() })
        });
        self.pool.take_thread(process, (pid, tid), now);
        let thread = process.thread(tid, now);
        let index = *thread.index.get_or_insert_with(|| {
            let mut row = profile::Thread::new(process_index, tid.0.to_string(), "");
            row.is_main = pid.0 == tid.0;
            builder.add_thread(row)
        });
        // One that is first heard of by what it has used has ended already, and perhaps its process.
        if self.shape.reuse_threads && thread.end.is_some() {
            self.pool.give_back_thread(process, (pid, tid));
            if is_new && process.end.is_some() {
                self.pool.give_back_process(process);
            }
        }
        index
    }
}

/// The latest time in a profile, ten years, in ns. A file that claims more is damaged; and in milliseconds, as floats, the end of a profile
/// would be no later than what is in it.
const LATEST: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// The time in a profile that begins at `zero`.
pub(super) fn since(zero: Timestamp, time: Timestamp) -> u64 {
    time.0.saturating_sub(zero.0).min(LATEST)
}

/// Names the rows of main threads so that processes of one name are told apart. Of a process whose main thread has no row, the
/// first one is shown as the process's.
pub(super) fn name_main_threads(builder: &mut ProfileBuilder, processes: &[&Process]) {
    let labels = row_names::told_apart(processes.iter().copied());
    for process in processes {
        let label = process.index.and_then(|index| labels.get(&index)).copied();
        let rows = process.threads.values().filter_map(|thread| Some((thread.index?, &thread.name)));
        let first = rows.min_by_key(|(index, _)| (!builder.profile().thread(*index).is_main, *index));
        if let Some((index, name)) = first {
            builder.thread_mut(index).name = row_names::main_row(process, name, label);
        }
    }
}

pub(super) fn name_process(builder: &mut ProfileBuilder, process: &Process, zero: Timestamp) {
    let since_zero = |time: Timestamp| since(zero, time);
    if let Some(index) = process.index {
        let row = builder.process_mut(index);
        if !process.reuses_row {
            row.name = process.full_name();
            row.start = since_zero(process.start);
        }
        row.end = process.end.map(since_zero);
    }
    let mut threads: Vec<&Thread> = process.threads.values().collect();
    threads.sort_unstable_by_key(|thread| thread.start);
    for Thread { index, name, start, end, reuses_row, .. } in threads {
        if let Some(index) = *index {
            let row = builder.thread_mut(index);
            if !*reuses_row {
                row.name = if row.is_main { process.full_name() } else { name.clone() };
                row.start = since_zero(*start);
            }
            row.end = end.map(since_zero);
        }
    }
}
