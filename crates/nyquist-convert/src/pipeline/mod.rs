//! The stages after the order stage: each event, in its turn, changes the state of processes and the profile.
//!
//! A sample goes through the parts in this order: the state of its process ([`ProcessState`]), the frames of
//! its stack ([`StackWalker`]), its weight ([`Accounting`]), and the profile ([`ProfileSink`]).

mod lasting_waits;
mod loss_events;
mod marks;
mod occurrences;
mod samples;
mod threads;
mod waits;

use crate::account::accounting::Accounting;
use crate::account::occurrence_counts::OccurrenceCounts;
use crate::account::off_cpu::Cause;
use crate::account::switch_reason::SwitchReason;
use crate::build::seen_addresses::AddressSender;
use crate::build::sink::ProfileSink;
use crate::event::{Event, EventKind, Pid, Tid, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::modules::lib_source::LibSource;
use crate::modules::store::ModuleStore;
use crate::options::Options;
use crate::processes::program_arguments::ProgramArguments;
use crate::processes::state::ProcessState;
use crate::recycler::SampleRecycler;
use crate::selection::event_selection::EventSelection;
use crate::statistics::Statistics;
use crate::unwind::stack_walker::StackWalker;
use nyquist_perf::file::PlacedFiles;
use nyquist_profile::{LibId, ProfileBuilder};

/// The stages after the order stage.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) processes: ProcessState,
    pub(crate) wanted: EventSelection,
    pub(crate) walker: StackWalker,
    account: Accounting,
    pub(crate) occurrences: OccurrenceCounts,
    pub(crate) sink: ProfileSink,
    /// The recycler of converted samples, if their source reuses them.
    recycler: Option<SampleRecycler>,
    /// The profile's zero.
    start: Timestamp,
    last_time: Timestamp,
}

impl Pipeline {
    /// A pipeline without events. Stack copies that were walked ahead of their turn are read again from
    /// `copies_in`.
    pub(crate) fn new(options: Options, copies_in: PlacedFiles, recycler: Option<SampleRecycler>) -> Self {
        let (start, interval, shape) = (options.start, options.interval(), options.shape);
        let modules = ModuleStore::new(options.recorded_files, options.side_files);
        let dumps = JitDumps::new(options.unlink_jitdumps);
        let arguments = ProgramArguments::new(shape.program_arguments, options.distinctive_words);
        Self {
            processes: ProcessState::new(modules, dumps, arguments),
            wanted: EventSelection::new(options.filter, options.selection, start),
            walker: StackWalker::new(interval, copies_in),
            account: Accounting::new(interval, options.kernel_permitted, options.kernel_symbols),
            occurrences: OccurrenceCounts::default(),
            sink: ProfileSink::new(options.meta, shape, (start, interval)),
            recycler,
            start,
            last_time: start,
        }
    }

    /// Notes that nothing has happened between the last event and `time`.
    pub(crate) fn note_end(&mut self, time: Timestamp) {
        self.last_time = self.last_time.max(time);
    }

    /// Converts the next event.
    pub(crate) fn convert(&mut self, event: Event) {
        let (now, cpu) = (event.time, event.cpu);
        self.last_time = self.last_time.max(now);
        match event.kind {
            EventKind::Sample(sample) => self.sample(now, cpu, sample),
            EventKind::SwitchOut(sample) => self.switch_out(now, cpu, &sample),
            EventKind::SwitchIn { tid } => self.switch_in(now, cpu, tid),
            EventKind::Descheduled { pid, tid, preempted } => {
                let why = if preempted { SwitchReason::Preempted } else { SwitchReason::Blocked };
                self.end_on_cpu_interval(now, cpu, (pid, tid), why);
                let cause = if preempted { Cause::Preempted } else { Cause::NotSeen };
                self.begin_wait(now, cpu, (pid, tid), cause);
            }
            EventKind::Waiting(waiting) => self.see_wait(now, *waiting),
            EventKind::SwitchStack(sample) => self.leave(now, cpu, sample),
            EventKind::Wakeup(wakeup) => self.wake(now, *wakeup),
            EventKind::Map(mapping) => self.processes.map(&mapping, now),
            EventKind::Unmap { pid, start, len } => self.processes.tracker.unmap(pid, start, len),
            EventKind::KernelCode { start, len, name } => self.processes.map_kernel_code(start, len, &name),
            EventKind::KernelCodeGone { start, len, name } => {
                self.processes.unmap_kernel_code(start, len, &name);
            }
            EventKind::Fork { pid, tid, parent_pid, parent_tid } => {
                self.fork(now, (pid, tid), (parent_pid, parent_tid));
            }
            EventKind::Name { pid, tid, name, exec } => self.name(now, (pid, tid), &name, exec),
            EventKind::Exit { pid, tid } => self.exit(now, cpu, (pid, tid)),
            EventKind::Total { pid, tid, cpu_time_ns } => self.total(now, cpu, (pid, tid), cpu_time_ns),
            EventKind::TotalInAll { cpu_time_ns } => self.account.losses.count_cpu_time(cpu_time_ns),
            EventKind::Lost { records } => self.lose(now, cpu, records),
            EventKind::LostInAll { records } => self.account.losses.count(cpu, records),
            EventKind::Throttled => self.pause(now, cpu),
            EventKind::Unthrottled => self.resume(now, cpu),
            EventKind::Marker(marker) => {
                if self.selects((marker.pid, marker.thread()), cpu, now) {
                    self.sink.add_marker(now, &marker, &mut self.processes);
                }
            }
            EventKind::Occurrence(occurrence) => self.occurrence(now, cpu, *occurrence),
            EventKind::OccurrencesLost { records } => {
                self.occurrences.lost = self.occurrences.lost.saturating_add(records);
            }
            EventKind::LiveStack(live) => self.walker.add_reading(live),
            EventKind::Counter(counter) => {
                if self.selects((counter.pid, Tid(counter.pid.0)), cpu, now) {
                    self.sink.count(now, &counter, &mut self.processes);
                }
            }
        }
    }

    /// Whether events of a thread are selected, on this CPU at this time.
    fn selects(&mut self, id: (Pid, Tid), cpu: Option<u32>, now: Timestamp) -> bool {
        self.wanted.selects(id, cpu, now, &mut self.processes.tracker)
    }

    /// Whether samples of a process are wanted.
    fn is_kept(&mut self, pid: Pid, now: Timestamp) -> bool {
        self.wanted.is_kept(pid, now, &mut self.processes.tracker)
    }

    /// The counters so far.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = self.account.statistics.clone();
        self.walker.count_in(&mut statistics);
        statistics
    }

    /// Adds the samples whose jitdumps have been read far enough; at the end, all of them.
    pub(crate) fn release_waiting(&mut self, is_end: bool) {
        self.sink.release_waiting(is_end, &mut self.processes);
    }

    /// The libs of the profile, and where their symbols come from.
    pub(crate) fn lib_sources(&self) -> Vec<(LibId, LibSource)> {
        self.sink.lib_sources(&self.processes)
    }

    /// Sends the addresses that are new since the last call.
    pub(crate) fn send_seen_addresses(&self, sender: &mut AddressSender) {
        self.sink.send_seen_addresses(sender, &self.processes);
    }

    /// Gives the processes and threads of a profile the names and lifetimes that are known by now.
    pub(crate) fn named_builder(&self, builder: ProfileBuilder) -> ProfileBuilder {
        self.sink.named_builder(builder, &self.processes.tracker, &self.statistics(), self.last_time)
    }

    /// Forgets all samples and markers before a time.
    pub(crate) fn evict(&mut self, before: Timestamp) {
        self.restart_waits(before);
        self.sink.evict(before);
    }
}
