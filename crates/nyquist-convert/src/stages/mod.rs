//! What comes after the order stage: each event, in its turn, changes what is known and what the profile holds.

mod losses;
mod notes;
mod rows;
mod samples;
mod stacks;

use crate::account::off_cpu::OffCpuIntervals;
use crate::account::on_cpu::OnCpu;
use crate::account::remainder::ProgramRemainders;
use crate::account::statistics::Statistics;
use crate::build::cpus::Cpus;
use crate::build::intern::Interner;
use crate::build::markers::Markers;
use crate::build::row_pool::Pool;
use crate::build::{condense, evict, markers};
use crate::event::{Event, EventKind, Pid, Tid, Timestamp};
use crate::filter::Filter;
use crate::modules::lib_source::LibSource;
use crate::options::Options;
use crate::processes::process::with_arguments;

use crate::processes::state::ProcessState;
use crate::recycler::SampleRecycler;
use crate::selection::Selection;
use crate::shape::Shape;
use crate::symbolicate::seen_addresses::AddressSender;
use crate::unwind::stack_walker::{StackWalker, WalkCounts};
use losses::Losses;
use notes::Reason;
use nyquist_profile::{ExtraInfo, FrameId, LibId, Meta, ProfileBuilder};
use rows::{name_process, since};
use stacks::{PATHS, Path, Place, Waiting};
use std::collections::VecDeque;

/// How long after the last event a profile ends, in ns: the Firefox Profiler leaves out what lies at the end itself. It also
/// must outweigh what adding up times in milliseconds rounds.
const BEYOND_LAST: u64 = 1_000;

/// What comes after the order stage.
#[derive(Debug)]
pub(crate) struct Stages {
    options: Options,
    pub(crate) processes: ProcessState,
    pub(crate) walker: StackWalker,
    /// Samples that wait for a jitdump to be written, by time.
    waiting: VecDeque<Waiting>,
    interner: Interner,
    markers: Markers,
    pub(crate) builder: ProfileBuilder,
    statistics: Statistics,
    losses: Losses,
    leftovers: ProgramRemainders,
    pub(crate) filter: Filter,
    pub(crate) shape: Shape,
    /// Rows of threads that have ended; empty unless the shape says that rows are used again.
    pool: Pool,
    cpus: Cpus,
    pub(crate) selection: Selection,
    waits: OffCpuIntervals,
    on_cpu: OnCpu,
    /// Where its frames are, outermost first; kept to save its memory.
    places: Vec<Place>,
    /// The frames of those of its places that its thread's last sample did not have; kept to save its memory.
    new_frames: Vec<FrameId>,
    /// The last stacks of threads, by the threads' numbers.
    paths: [Path; PATHS],
    /// Where samples go that were converted, if somebody wants them back.
    pub(crate) spent: Option<SampleRecycler>,
    last_time: Timestamp,
}

impl Stages {
    /// Stages that have seen nothing.
    pub(crate) fn new(options: Options) -> Self {
        let mut builder = ProfileBuilder::new(options.meta.clone());
        let interval = options.meta.interval.max(1);
        let interner = Interner::new(&mut builder);
        Self {
            last_time: options.start,
            spent: None,
            options,
            processes: ProcessState::default(),
            walker: StackWalker::new(interval),
            waiting: VecDeque::new(),
            interner,
            markers: Markers::default(),
            builder,
            statistics: Statistics::default(),
            losses: Losses::default(),
            leftovers: ProgramRemainders::default(),
            filter: Filter::All,
            shape: Shape::default(),
            pool: Pool::default(),
            cpus: Cpus::default(),
            selection: Selection::default(),
            waits: OffCpuIntervals::default(),
            on_cpu: OnCpu::default(),
            places: Vec::new(),
            new_frames: Vec::new(),
            paths: Default::default(),
        }
    }

    /// Nothing has happened from the last event on until then.
    pub(crate) fn note_end(&mut self, time: Timestamp) {
        self.last_time = self.last_time.max(time);
    }

    pub(crate) fn convert(&mut self, event: Event) {
        let (now, cpu) = (event.time, event.cpu);
        self.last_time = self.last_time.max(now);
        match event.kind {
            EventKind::Sample(mut sample) => {
                self.note_sampled(now, cpu);
                if self.processes.name_nameless(&mut sample, cpu)
                    && self.is_kept(sample.pid, now)
                    && self.wants((sample.pid, sample.tid), cpu, now)
                {
                    self.sample(now, cpu, &sample);
                }
                if let Some(spent) = &mut self.spent {
                    spent.take(sample);
                } else {
                    self.walker.walk_pool.put(sample.user);
                }
            }
            EventKind::SwitchOut(sample) => self.switch_out(now, cpu, &sample),
            EventKind::SwitchIn { tid } => {
                self.end_wait(tid, now);
                self.switched_in(now, cpu, tid);
            }
            EventKind::Descheduled { pid, tid, preempted } => {
                let why = if preempted { Reason::Preempted } else { Reason::Blocked };
                self.switched_out(now, cpu, (pid, tid), why);
            }
            EventKind::Map(mapping) => self.processes.map(&mapping, now),
            EventKind::Unmap { pid, start, len } => self.processes.tracker.unmap(pid, start, len),
            EventKind::KernelCode { start, len, name } => self.processes.map_kernel_code(start, len, &name),
            EventKind::KernelCodeGone { start, len, name } => {
                self.processes.unmap_kernel_code(start, len, &name);
            }
            EventKind::Fork { pid, tid, parent_pid, parent_tid } => {
                self.on_cpu.forget(tid);
                let replaced = self.processes.tracker.fork(pid, tid, (parent_pid, parent_tid), now);
                if let Some(process) = replaced {
                    name_process(&mut self.builder, &process, self.options.start);
                }
            }
            EventKind::Name { pid, tid, name, exec } => {
                self.name(now, (pid, tid), &name, exec);
                self.filter_from(pid, exec, now);
            }
            EventKind::Exit { pid, tid } => {
                self.switched_out(now, cpu, (pid, tid), Reason::Ended);
                self.exit(now, (pid, tid));
                self.walker.deep_stacks.forget(tid);
                self.processes.note_exit((pid, tid), cpu);
            }
            EventKind::Total { pid, tid, cpu_time_ns } => {
                if self.wants((pid, tid), cpu, now) {
                    self.total(now, cpu, (pid, tid), cpu_time_ns);
                }
            }
            EventKind::TotalInAll { cpu_time_ns } => self.count_cpu_time(cpu_time_ns),
            EventKind::Lost { records } => self.lose(now, cpu, records),
            EventKind::LostInAll { records } => self.count_losses(cpu, records),
            EventKind::Throttled => self.pause(now, cpu),
            EventKind::Unthrottled => self.resume(now, cpu),
            EventKind::Marker(marker) => {
                if self.wants((marker.pid, marker.thread()), cpu, now) {
                    self.marker(now, &marker);
                }
            }
            EventKind::LiveStack(live) => self.walker.deep_stacks.add(live),
            EventKind::Counter(counter) => {
                if self.wants((counter.pid, Tid(counter.pid.0)), cpu, now) {
                    self.counter(now, &counter);
                }
            }
        }
    }

    /// Whether samples of a process are wanted. Number 0 is the idle CPU's.
    fn is_kept(&mut self, pid: Pid, now: Timestamp) -> bool {
        pid.0 != 0
            && match &self.filter {
                Filter::All => true,
                Filter::FromExec(waiting) => *waiting != pid,
                Filter::Family(_) => self.processes.process(pid, now).in_family,
                Filter::Named(names) => {
                    let process = self.processes.process(pid, now);
                    let main = process.threads.get(&Tid(pid.0)).map(|thread| &thread.name);
                    let mut names_of = [Some(&process.name), main].into_iter().flatten();
                    names_of.any(|name| names.iter().any(|pattern| pattern.matches(name)))
                }
            }
    }

    /// A process has a name, by exec or as it was found.
    fn filter_from(&mut self, pid: Pid, exec: bool, now: Timestamp) {
        match &mut self.filter {
            Filter::FromExec(waiting) if exec && *waiting == pid => self.filter = Filter::All,
            Filter::Family(pids) => {
                // Removed, for who has the number later is another process.
                let is_asked_for = pids.remove(&pid);
                self.processes.process(pid, now).in_family |= is_asked_for;
            }
            _ => {}
        }
    }

    fn name(&mut self, now: Timestamp, (pid, tid): (Pid, Tid), name: &str, exec: bool) {
        let line = self.processes.program_arguments.take(pid, now);
        if self.shape.reuse_threads {
            let process = self.processes.process(pid, now);
            let kept = if exec { "" } else { &process.arguments };
            let is_main = pid.0 == tid.0;
            let told = line.as_ref().filter(|_| is_main).map(|line| &*line.arguments);
            let new_name = if is_main {
                with_arguments(process.name_after(name, exec), told.unwrap_or(kept))
            } else {
                name.to_owned()
            };
            if self.pool.has_other_row(process, (pid, tid), &new_name) {
                // Later it is not to be found from here any more.
                name_process(&mut self.builder, process, self.options.start);
                self.pool.give_back(process, (pid, tid));
            }
        }
        self.processes.tracker.name(pid, tid, name, exec, now);
        if let Some(line) = line {
            self.processes.process(pid, now).set_command_line(line, name);
        }
    }

    fn exit(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        if !self.shape.reuse_threads {
            let ends = self.processes.tracker.living_thread(pid, tid);
            if let Some(row) = ends.and_then(|thread| thread.index) {
                self.builder.end_samples(row);
            }
            return self.processes.tracker.exit(pid, tid, now);
        }
        let thread = self.processes.process(pid, now).threads.get(&tid);
        let ends_now = thread.is_some_and(|thread| thread.end.is_none());
        self.processes.tracker.exit(pid, tid, now);
        let process = self.processes.process(pid, now);
        if ends_now {
            self.pool.give_back_thread(process, (pid, tid));
        }
        if ends_now && process.end.is_some() {
            self.pool.give_back_process(process);
        }
    }

    pub(super) fn wants(&mut self, id: (Pid, Tid), cpu: Option<u32>, now: Timestamp) -> bool {
        let selection = &self.selection;
        if !selection.wants(id, cpu, now.0.saturating_sub(self.options.start.0)) {
            return false;
        }
        if !selection.looks_at_names() {
            return true;
        }
        let process = self.processes.process(id.0, now);
        let thread = process.threads.get(&id.1).map_or("", |thread| &thread.name);
        selection.wants_name(&process.name, thread)
    }

    /// What was counted so far.
    pub(crate) fn statistics(&self) -> Statistics {
        let WalkCounts { completed, incomplete, walked_again } = self.walker.counts;
        Statistics { completed, incomplete, walked_again, ..self.statistics }
    }

    /// The processes whose stacks are not to be walked before their turn any more.
    pub(crate) fn drain_stale_processes(&mut self) -> Vec<Pid> {
        self.walker.drain_stale_processes(self.last_time, &mut self.processes)
    }

    pub(super) fn interval(&self) -> u64 {
        self.options.meta.interval.max(1)
    }

    pub(super) fn profile_time(&self, time: Timestamp) -> u64 {
        since(self.options.start, time)
    }

    pub(crate) fn lib_sources(&self) -> Vec<(LibId, LibSource)> {
        let source = |module| self.processes.modules.source(module, &self.processes.dumps);
        let mut sources: Vec<_> = self.interner.libs().map(|(lib, module)| (lib, source(module))).collect();
        sources.sort_by_key(|(lib, _)| *lib);
        sources
    }

    /// Sends the addresses that were met since the last time.
    pub(crate) fn send_seen_addresses(&self, sender: &mut AddressSender) {
        sender.send(self.builder.profile(), |lib| {
            let (_, module) = self.interner.libs().find(|(known, _)| *known == lib)?;
            self.processes.modules.early_source(module, &self.processes.dumps)
        });
    }

    /// Gives the processes and threads of a profile the names and lifetimes that are known by now.
    pub(crate) fn named_builder(&self, mut builder: ProfileBuilder) -> ProfileBuilder {
        let mut processes: Vec<_> = self.processes.tracker.processes().map(|(_, process)| process).collect();
        // Of several that share a row, the last one says when it ended.
        processes.sort_unstable_by_key(|process| process.start);
        for process in &processes {
            name_process(&mut builder, process, self.options.start);
        }
        // A row that several processes share is called by their name alone.
        if !self.shape.reuse_threads {
            rows::name_main_threads(&mut builder, &processes);
        }
        markers::drop_lonely_flows(&mut builder);
        let meta = builder.meta_mut();
        meta.profiling_start = Some(0);
        meta.profiling_end = Some(self.profile_time(self.last_time) + BEYOND_LAST);
        meta.extra.push(ExtraInfo {
            section: "Recording".to_owned(),
            label: "Lost samples".to_owned(),
            value: self.statistics.lost.to_string(),
        });
        if self.walker.counts.completed > 0 {
            meta.extra.push(ExtraInfo {
                section: "Recording".to_owned(),
                label: "Stacks completed from the running program's memory".to_owned(),
                value: self.walker.counts.completed.to_string(),
            });
        }
        builder
    }

    pub(crate) fn condense(&mut self, before: Timestamp) {
        let before = self.profile_time(before);
        condense::samples_before(&mut self.builder, before);
    }

    pub(crate) fn evict(&mut self, before: Timestamp) {
        // Their stacks are numbers of the tables that are made anew.
        self.end_all_waits();
        let before = self.profile_time(before);
        let old = std::mem::replace(&mut self.builder, ProfileBuilder::new(Meta::default()));
        self.builder = evict::samples_before(old, before);
        self.forget_stacks();
    }
}
