//! The stages after the order stage: each event, in its turn, changes the state of processes and the profile.
//!
//! A sample goes through the parts in this order: the state of its process ([`ProcessState`]), the frames of
//! its stack ([`StackWalker`]), its weight ([`Accounting`]), and the profile ([`ProfileSink`]).

mod allocations;
mod lasting_waits;
mod loss_events;
mod marks;
mod occurrences;
mod pauses;
mod samples;
mod spooling;
mod threads;
mod waits;

use crate::account::accounting::{Accounting, TimeRules};
use crate::account::cycle_time::CycleTime;
use crate::account::heap::Heaps;
use crate::account::occurrence_counts::OccurrenceCounts;
use crate::account::off_cpu::OffCpuIntervals;
use crate::account::off_cpu_interval::Cause;
use crate::account::on_cpu::OnCpu;
use crate::account::switch_reason::SwitchReason;
use crate::build::seen_addresses::AddressSender;
use crate::build::sink::ProfileSink;
use crate::conversion_result::{ConversionResult, Libs};
use crate::event::{Event, EventKind, Mapping, Pid, Tid, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::modules::lib_source::LibSource;
use crate::modules::store::ModuleStore;
use crate::options::Options;
use crate::processes::memory::ProcessMemory;
use crate::processes::program_arguments::ProgramArguments;
use crate::processes::state::ProcessState;
use crate::recycler::SampleRecycler;
use crate::selection::event_selection::EventSelection;
use crate::selection::process_filter::ProcessFilter;
use crate::shape::Shape;
use crate::statistics::Statistics;
use crate::unwind::active_completion::StackCopyFeedback;
use crate::unwind::stack_walker::StackWalker;
use nyquist_object::BuildId;
use nyquist_perf::file::PlacedFiles;
use nyquist_profile::{LibId, Profile};
use std::collections::VecDeque;

/// The stages after the order stage.
#[derive(Debug)]
pub(crate) struct Pipeline {
    processes: ProcessState,
    requested: EventSelection,
    walker: StackWalker,
    account: Accounting,
    off_cpu: OffCpuIntervals,
    on_cpu: OnCpu,
    occurrences: OccurrenceCounts,
    heaps: Heaps,
    /// How many markers the programs have set.
    markers: u64,
    sink: ProfileSink,
    /// Which rows and markers the profile has.
    shape: Shape,
    /// The recycler of converted samples, if their source reuses them.
    recycler: Option<SampleRecycler>,
    /// The processes that have ended and whose CPU time is not settled, by their ends.
    ended: VecDeque<(Timestamp, Pid)>,
    /// Since when all is recorded: the profile's zero, or the end of the last pause.
    recorded_since: Timestamp,
    /// Since when the recording is paused.
    paused_since: Option<Timestamp>,
    last_time: Timestamp,
}

impl Pipeline {
    /// A pipeline without events. Stack copies that were walked ahead of their turn are read again from
    /// `copies_in`.
    pub(crate) fn new(options: Options, copies_in: PlacedFiles, recycler: Option<SampleRecycler>) -> Self {
        let (start, interval, shape) = (options.start, options.interval(), options.shape);
        let kernel_permitted = options.kernel_permitted;
        let cycle_time = options.cycle_time;
        let sampling_interval = cycle_time.as_ref().map_or(interval, CycleTime::interval_ns);
        let rules = TimeRules { interval, sampling_interval, kernel_permitted, shows_waits: shape.waits };
        let memory = ProcessMemory::new(options.process_memory);
        let (targets, names) = (options.targets, (options.side_files, &memory.files));
        let modules = ModuleStore::new(options.recorded_files, targets.clone(), names);
        let dumps = JitDumps::new(options.unlink_jitdumps);
        let wants_words = options.distinctive_words;
        let requested = (shape.program_arguments, wants_words);
        let arguments = ProgramArguments::new(requested, memory.arguments, targets);
        Self {
            processes: ProcessState::new((modules, dumps), arguments, memory.mappings),
            requested: EventSelection::new(options.filter, options.selection, start),
            walker: StackWalker::new(sampling_interval, copies_in),
            account: Accounting::new(rules, cycle_time),
            off_cpu: OffCpuIntervals::new(options.kernel_symbols),
            on_cpu: OnCpu::default(),
            occurrences: OccurrenceCounts::default(),
            heaps: Heaps::default(),
            markers: 0,
            sink: ProfileSink::new(options.meta, shape, (start, interval)),
            shape,
            recycler,
            ended: VecDeque::new(),
            recorded_since: start,
            paused_since: None,
            last_time: start,
        }
    }

    /// Keeps only the samples that pass a filter, of those that are converted later.
    pub(crate) fn keep_only(&mut self, filter: ProcessFilter) {
        self.requested.keep_only(filter);
    }

    /// Reads what may be gone when the turn of an event comes.
    pub(crate) fn look_ahead(&mut self, event: &Event) {
        self.processes.look_ahead(event);
    }

    /// Opens the file of a mapping whose event comes later, and compiles its unwind information, because
    /// another thread will need it soon.
    pub(crate) fn prepare_mapping(&mut self, mapping: &Mapping) {
        self.processes.prepare_mapping(mapping);
    }

    /// The build ids of the files that were mapped and opened so far, by their paths.
    pub(crate) fn build_ids(&self) -> Vec<(String, BuildId)> {
        self.processes.modules().build_ids()
    }

    /// A store of modules that shares opened files with this one.
    pub(crate) fn shared_module_store(&self) -> ModuleStore {
        self.processes.modules().sharing_files()
    }

    /// The feedback on stack copies since the last call.
    pub(crate) fn take_stack_copy_feedback(&mut self) -> StackCopyFeedback {
        self.walker.take_feedback()
    }

    /// Notes that nothing has happened between the last event and `time`.
    pub(crate) fn note_end(&mut self, time: Timestamp) {
        self.last_time = self.last_time.max(time);
    }

    /// Converts the next event.
    pub(crate) fn convert(&mut self, event: Event) {
        let (now, cpu) = (event.time, event.cpu);
        self.last_time = self.last_time.max(now);
        if self.leaves_out(&event.kind) {
            return;
        }
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
            EventKind::Unmap { pid, start, len } => self.processes.unmap(pid, start, len),
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
            EventKind::TotalInAll { cpu_time_ns } => self.account.count_cpu_time(cpu_time_ns),
            EventKind::Lost { records } => self.lose(now, cpu, records),
            EventKind::LostInAll { records } => self.account.count_lost_in_all(cpu, records),
            EventKind::Paused => self.pause_recording(now),
            EventKind::Resumed => self.resume_recording(now),
            EventKind::Throttled => self.pause(now, cpu),
            EventKind::Unthrottled => self.resume(now, cpu),
            EventKind::Marker(marker) => {
                if self.selects((marker.pid, marker.thread()), cpu, now) {
                    self.markers += 1;
                    self.sink.add_marker(now, &marker, &mut self.processes);
                }
            }
            EventKind::Occurrence(occurrence) => self.occurrence(now, cpu, *occurrence),
            EventKind::OccurrencesLost { records } => self.occurrences.lose(records),
            EventKind::Allocation(allocation) => self.allocation(now, cpu, *allocation),
            EventKind::Free(free) => self.free(now, &free),
            EventKind::HeapContents(contents) => self.heaps.keep_only(now, &contents),
            EventKind::LiveStack(live) => self.walker.add_reading(live),
            EventKind::MemoryDenied { pid } => self.processes.process(pid, now).code.denies_memory = true,
            EventKind::Counter(counter) => {
                if self.selects((counter.pid, Tid(counter.pid.0)), cpu, now) {
                    self.sink.count(now, &counter, &mut self.processes);
                }
            }
        }
    }

    /// Whether events of a thread are selected, on this CPU at this time.
    fn selects(&mut self, id: (Pid, Tid), cpu: Option<u32>, now: Timestamp) -> bool {
        self.requested.selects(id, cpu, now, &mut self.processes)
    }

    /// Whether samples of a process are requested.
    fn is_kept(&mut self, pid: Pid, now: Timestamp) -> bool {
        self.requested.is_kept(pid, now, &mut self.processes)
    }

    /// Reads what compilers have written since the last call. Comes before the events up to now.
    pub(crate) fn read_jitdumps(&mut self) {
        self.processes.read_jitdumps();
    }

    /// Adds what had to wait until all events before a time were converted.
    pub(crate) fn catch_up(&mut self, complete_before: Timestamp) {
        self.settle_ended_processes(complete_before);
        self.sink.release_waiting(false, &mut self.processes);
        self.mark_jit_functions(complete_before);
        self.sink.place_gaps();
    }

    /// The counters so far.
    pub(crate) fn occurrences(&self) -> &OccurrenceCounts {
        &self.occurrences
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = self.account.statistics();
        self.walker.count_in(&mut statistics);
        statistics.markers = self.markers;
        statistics
    }

    /// The libs of the profile, and where their symbols come from.
    pub(crate) fn lib_sources(&self) -> Vec<(LibId, LibSource)> {
        self.sink.lib_sources(&self.processes)
    }

    /// Sends the addresses that are new since the last call.
    pub(crate) fn send_seen_addresses(&self, sender: &mut AddressSender) {
        self.sink.send_seen_addresses(sender, &self.processes);
    }

    /// The profile so far.
    pub(crate) fn snapshot(&self) -> Profile {
        self.sink.snapshot(&self.processes, &self.statistics(), self.last_time, &self.heaps.so_far())
    }

    /// The tables of the profile so far.
    pub(crate) fn tables(&self) -> &Profile {
        self.sink.tables()
    }

    /// How many stacks the profile has so far.
    pub(crate) fn stack_count(&self) -> usize {
        self.sink.stack_count()
    }

    /// Forgets all samples and markers before a time.
    pub(crate) fn evict(&mut self, before: Timestamp) {
        self.restart_waits(before);
        // Their stacks may be gone.
        self.heaps = Heaps::default();
        self.sink.evict(before);
        self.note_markers_left();
    }

    /// Keeps only the sums of all samples before a time.
    pub(crate) fn condense(&mut self, before: Timestamp) {
        self.sink.condense(before);
        self.note_markers_left();
    }

    /// The profile of all events, which have been converted.
    pub(crate) fn finish(mut self) -> ConversionResult {
        self.end_all_waits();
        self.end_all_on_cpu();
        self.sink.release_waiting(true, &mut self.processes);
        self.settle_all_processes();
        self.end_pause();
        self.end_gaps();
        self.show_allocations();
        // Only now all samples are in the profile.
        self.show_rest();
        let statistics = self.statistics();
        let lib_sources = self.lib_sources();
        ConversionResult {
            profile: self.sink.finish(&self.processes, &statistics, self.last_time),
            statistics,
            occurrences: self.occurrences,
            notes: self.processes.notes(),
            libs: Libs::new(lib_sources, self.processes.into_modules()),
        }
    }
}
