//! Rows of the profile: processes, threads, markers and counters, each made at its first event.

use super::row_names::name_process;
use super::sink::ProfileSink;
use crate::event::{Counter, Marker, MarkerTiming, Pid, Tid, Timestamp, Track};
use crate::processes::process::{Process, with_arguments};
use crate::processes::program_arguments::CommandLine;
use crate::processes::state::ProcessState;
use nyquist_profile::{self as profile, ProcessIndex, ThreadIndex};

/// The minimum number of samples under its old name for which a process keeps rows of its own when it becomes
/// another program.
const MIN_SAMPLES_OF_PROGRAM: usize = 10;

impl ProfileSink {
    /// Adds a marker.
    pub(crate) fn add_marker(&mut self, now: Timestamp, marker: &Marker, processes: &mut ProcessState) {
        let thread = match &marker.track {
            Track::Thread(tid) if self.is_left_out((marker.pid, *tid)) => return,
            Track::Thread(tid) => self.thread_row(now, (marker.pid, *tid), processes),
            Track::Named(name) => {
                let process = self.process_with_thread(now, marker.pid, processes);
                self.markers.track(&mut self.builder, process, name)
            }
        };
        let time = self.time(now);
        let timing = match marker.timing {
            MarkerTiming::Instant => profile::MarkerTiming::Instant(time),
            MarkerTiming::Interval { start } => {
                profile::MarkerTiming::Interval(self.time(start).min(time), time)
            }
            MarkerTiming::IntervalStart => profile::MarkerTiming::IntervalStart(time),
            MarkerTiming::IntervalEnd => profile::MarkerTiming::IntervalEnd(time),
        };
        self.markers.add(&mut self.builder, thread, marker.into(), timing);
    }

    /// Adds a marker of an interval to the rows of a CPU.
    pub(crate) fn add_cpu_marker(&mut self, (start, end): (Timestamp, Timestamp), cpu: u32, marker: &Marker) {
        let timing = profile::MarkerTiming::Interval(self.time(start), self.time(end));
        for row in self.cpus.rows(&mut self.builder, cpu) {
            self.markers.add(&mut self.builder, row, marker.into(), timing);
        }
    }

    /// Adds the value of a counter.
    pub(crate) fn count(&mut self, now: Timestamp, counter: &Counter, processes: &mut ProcessState) {
        let time = self.time(now);
        let process = if counter.kind.accompanies {
            // A counter that only accompanies samples makes no row, because the main thread may have ended,
            // or may never have run.
            let process = processes.process(counter.pid, now);
            let id = (counter.pid, process.start);
            let Some(index) = process.index else { return self.counters.wait(id, counter, time) };
            index
        } else {
            self.process_with_thread(now, counter.pid, processes)
        };
        self.counters.count(&mut self.builder, process, counter, time);
    }

    /// The process of the profile. Its main thread gets a row, because counters and tracks are shown with the
    /// main thread.
    fn process_with_thread(
        &mut self,
        now: Timestamp,
        pid: Pid,
        processes: &mut ProcessState,
    ) -> ProcessIndex {
        let main = self.thread_row(now, (pid, Tid(pid.0)), processes);
        self.builder.profile().thread(main).process
    }

    /// The thread of the profile, which is made at its first sample or marker.
    pub(crate) fn thread_row(
        &mut self,
        now: Timestamp,
        (pid, tid): (Pid, Tid),
        processes: &mut ProcessState,
    ) -> ThreadIndex {
        let process = processes.process(pid, now);
        if let Some(index) = process.threads.get(&tid).and_then(|thread| thread.index) {
            return index;
        }
        let is_new = process.index.is_none();
        self.pool.take_process(process);
        let builder = &mut self.builder;
        let process_index = *process.index.get_or_insert_with(|| {
            builder.add_process(profile::Process { pid: pid.0.to_string(), ..profile::Process::default() })
        });
        if is_new {
            self.counters.add_waiting(builder, process_index, (pid, process.start));
        }
        self.pool.take_thread(process, (pid, tid), now);
        let thread = process.thread(tid, now);
        let index = *thread.index.get_or_insert_with(|| {
            let mut row = profile::Thread::new(process_index, tid.0.to_string(), "");
            row.is_main = pid.0 == tid.0;
            builder.add_thread(row)
        });
        // A thread whose first event is its CPU time has ended already, and perhaps its process too.
        if self.shape.reuse_threads && thread.end.is_some() {
            self.pool.give_back_thread(process, (pid, tid));
            if is_new && process.end.is_some() {
                self.pool.give_back_process(process);
            }
        }
        index
    }

    /// Sets the names and lifetimes of a process that are known by now, because the process cannot be found
    /// later.
    pub(crate) fn name_process(&mut self, process: &Process) {
        name_process(&mut self.builder, process, self.start);
    }

    /// A thread takes another name, perhaps with another command line. If rows are reused, it may then need
    /// another row.
    pub(crate) fn note_new_name(
        &mut self,
        process: &mut Process,
        (pid, tid): (Pid, Tid),
        (name, exec): (&str, bool),
        line: Option<&CommandLine>,
    ) {
        let retained = if exec { "" } else { &process.arguments };
        let is_main = pid.0 == tid.0;
        let provided = line.filter(|_| is_main).map(|line| &*line.arguments);
        let new_name = if is_main {
            with_arguments(process.name_after(name, exec), provided.unwrap_or(retained))
        } else {
            name.to_owned()
        };
        if self.pool.has_other_row(process, (pid, tid), &new_name) {
            // The process cannot be found from its row later.
            self.name_process(process);
            self.pool.give_back(process, (pid, tid));
        }
    }

    /// A process becomes a program of another name. Its samples so far stay under the old name, if they are
    /// many enough for rows of their own. Otherwise, as for a child between its birth and exec, they are
    /// shown with the new program.
    pub(crate) fn leave_program(&mut self, process: &mut Process, pid: Pid, name: &str, now: Timestamp) {
        let Some(row) = process.index.filter(|_| process.name_after(name, true) != process.name) else {
            return;
        };
        let rows = process.threads.values().filter_map(|thread| thread.index);
        let samples: usize = rows.map(|row| self.builder.profile().thread(row).samples.len()).sum();
        if samples < MIN_SAMPLES_OF_PROGRAM {
            return;
        }
        self.name_process(process);
        let end = Some(self.time(now));
        self.builder.process_mut(row).end = end;
        for thread in process.threads.values_mut() {
            if let Some(row) = thread.index.take() {
                self.builder.thread_mut(row).end = self.builder.profile().thread(row).end.or(end);
            }
        }
        self.counters.leave_row(row, (pid, process.start));
        process.index = None;
        process.program_start = Some(now);
    }

    /// Makes the rows of a thread that has ended, and of its process, available to others.
    pub(crate) fn give_back(&mut self, process: &Process, id: (Pid, Tid)) {
        self.pool.give_back_thread(process, id);
        if process.end.is_some() {
            self.pool.give_back_process(process);
        }
    }
}
