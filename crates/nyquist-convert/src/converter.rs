//! The converter: drives events through the stages, and keeps the profile that they make.

use crate::account::{Balance, Leftovers};
use crate::cpus::Cpus;
use crate::event::{
    Counter, Event, EventKind, Mapping, Marker, MarkerTiming, Pid, Registers, Sample, SampleState, Tid,
    Timestamp, Track, UserStack,
};
use crate::evict;
use crate::intern::{Interner, Mode};
use crate::jit::{DumpIndex, JitDumps};
use crate::mappings::Range;
use crate::markers::Markers;
use crate::modules::{LibSource, ModuleStore};
use crate::order::Order;
use crate::program_arguments::ProgramArguments;
use crate::recorded_files::{Files, RecordedFiles};
use crate::reuse::Pool;
use crate::select::Selection;
use crate::shape::Shape;
use crate::track::{Process, Thread, Tracker};
use crate::waits::{Wait, Waits};
use nyquist_object::Avma;
use nyquist_profile::{
    self as profile, CategoryColor, ExtraInfo, LibId, Meta, ProcessIndex, Profile, ProfileBuilder, StackId,
    ThreadIndex, well_known,
};
use nyquist_unwind::{FrameAddress, StackCopy, Unwinder, WalkEnd};
use std::collections::VecDeque;

/// How long after the last event a profile ends, in ns: the Firefox Profiler leaves out what lies at the end itself. It also
/// must outweigh what adding up times in milliseconds rounds.
const BEYOND_LAST: u64 = 1_000;

/// What the converter has to know of the recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// The profile's zero: times count from here.
    pub start: Timestamp,
    /// Whether the source may sample the kernel. If not, the CPU time for which there is no sample is shown as
    /// a share of its own.
    pub kernel_permitted: bool,
    /// What is known of the recording and the machine. The interval is what a sample of weight 1 stands for.
    pub meta: Meta,
}

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Samples that were converted.
    pub samples: u64,
    /// Records that the source dropped.
    pub lost: u64,
    /// How often the kernel paused sampling.
    pub throttled: u64,
    /// Samples whose stack does not reach its root.
    pub truncated: u64,
    /// Events that came too late to be put in order.
    pub late: u64,
}

/// Turns events into a profile, incrementally: [`push`](Self::push) events and say with
/// [`advance`](Self::advance) how far they are complete; take a [`snapshot`](Self::snapshot) whenever a profile
/// is wanted; [`evict`](Self::evict) what is too old to be kept.
#[derive(Debug)]
pub struct Converter {
    order: Order,
    stages: Stages,
}

/// What a sample stands for.
struct Share {
    weight: u32,
    cpu_delta: u64,
    off_cpu: bool,
}

/// What comes after the order stage.
#[derive(Debug)]
struct Stages {
    options: Options,
    tracker: Tracker,
    modules: ModuleStore,
    dumps: JitDumps,
    /// Samples that wait for a jitdump to be written, by time.
    waiting: VecDeque<Waiting>,
    unwinder: Unwinder,
    interner: Interner,
    markers: Markers,
    builder: ProfileBuilder,
    statistics: Statistics,
    leftovers: Leftovers,
    shape: Shape,
    /// Rows of threads that have ended; empty unless the shape says that rows are used again.
    pool: Pool,
    cpus: Cpus,
    program_arguments: ProgramArguments,
    selection: Selection,
    waits: Waits,
    /// The frames of the sample at hand, innermost first; kept to save its memory.
    frames: Vec<FrameAddress>,
    /// Where its frames are, outermost first; kept to save its memory.
    places: Vec<Place>,
    last_time: Timestamp,
}

/// One frame of the sample at hand.
#[derive(Clone, Debug)]
enum Place {
    /// The root of a stack that could not be finished, for this reason.
    Truncated(String),
    /// What stands for the user's part of the stack, which nobody has walked.
    Label(&'static str),
    /// An address, and the memory that holds it, where that is known.
    Code(Option<Range>, Avma, Mode),
}

impl Place {
    /// Whether nobody has said yet what the code at a user's address is.
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Code(None, _, Mode::User))
    }
}

/// A sample without its stack, and where it goes.
#[derive(Debug)]
struct Row {
    thread: ThreadIndex,
    /// The CPU that has a track of its own, and what the sample is called there.
    on_cpu: Option<(u32, String)>,
    sample: profile::Sample,
}

/// A sample in code whose jitdump has not yet been written up to its time.
#[derive(Debug)]
struct Waiting {
    time: Timestamp,
    row: Row,
    places: Vec<Place>,
    dumps: Vec<DumpIndex>,
}

impl Converter {
    /// A converter that has seen nothing.
    pub fn new(options: Options) -> Self {
        let mut builder = ProfileBuilder::new(options.meta.clone());
        let interner = Interner::new(&mut builder);
        let stages = Stages {
            last_time: options.start,
            options,
            tracker: Tracker::default(),
            modules: ModuleStore::default(),
            dumps: JitDumps::default(),
            waiting: VecDeque::new(),
            unwinder: Unwinder::new(),
            interner,
            markers: Markers::default(),
            builder,
            statistics: Statistics::default(),
            leftovers: Leftovers::default(),
            shape: Shape::default(),
            pool: Pool::default(),
            cpus: Cpus::default(),
            program_arguments: ProgramArguments::default(),
            selection: Selection::default(),
            waits: Waits::default(),
            frames: Vec::new(),
            places: Vec::new(),
        };
        Self { order: Order::default(), stages }
    }

    /// Gives the profile another shape than that of one thread for each thread; to be said before anything is pushed.
    #[must_use]
    pub fn shaped(mut self, shape: Shape) -> Self {
        self.stages.program_arguments = ProgramArguments::of(shape.program_arguments);
        self.stages.shape = shape;
        self
    }

    /// Removes each jitdump from its folder when it has been opened; to be said before anything is pushed.
    #[must_use]
    pub fn unlinking_jitdumps(mut self, unlink: bool) -> Self {
        self.stages.dumps.unlink = unlink;
        self
    }

    /// Looks for mapped files as those of a recording that is read later, and not where living processes have them. To be
    /// called before the first event.
    #[must_use]
    pub fn with_recorded_files(mut self, files: RecordedFiles) -> Self {
        self.stages.modules = ModuleStore::of(Files::Recorded(files));
        self
    }

    /// Converts only the samples that are wanted.
    #[must_use]
    pub fn with_selection(mut self, selection: Selection) -> Self {
        self.stages.selection = selection;
        self
    }

    /// Takes an event.
    pub fn push(&mut self, event: Event) {
        self.stages.note_mapping(&event);
        self.stages.program_arguments.note(&event);
        self.order.push(event);
    }

    /// Converts all events older than `complete_before`: every one of them has been pushed.
    pub fn advance(&mut self, complete_before: Timestamp) {
        self.stages.dumps.read_on();
        for event in self.order.release(complete_before) {
            self.stages.convert(event);
        }
        self.stages.release_waiting(false);
    }

    /// Takes note of how many records the source has dropped in all, where it counts them itself: the last losses
    /// of a recording have no record of their own.
    pub fn note_lost(&mut self, records: u64) {
        let stages = &mut self.stages;
        stages.statistics.lost = stages.statistics.lost.max(records);
        stages.builder.meta_mut().lost_samples = stages.statistics.lost;
    }

    /// The profile of what was converted so far. Costs a copy of it.
    pub fn snapshot(&self) -> Profile {
        self.stages.named_builder(self.stages.builder.clone()).finish()
    }

    /// The profile of everything that was pushed.
    pub fn finish(mut self) -> Finished {
        self.advance(Timestamp(u64::MAX));
        self.stages.end_all_waits();
        self.stages.release_waiting(true);
        let statistics = self.statistics();
        let lib_sources = self.stages.lib_sources();
        let builder = std::mem::replace(&mut self.stages.builder, ProfileBuilder::new(Meta::default()));
        let profile = self.stages.named_builder(builder).finish();
        Finished { profile, statistics, libs: Libs { sources: lib_sources, _modules: self.stages.modules } }
    }

    /// Forgets all samples and markers before a point in time, and the stacks and frames that only they had. Costs as much
    /// as building the tables that stay.
    pub fn evict(&mut self, before: Timestamp) {
        self.stages.evict(before);
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        Statistics { late: self.order.late(), ..self.stages.statistics }
    }
}

/// A profile whose frames are addresses, and what is needed to give them names.
#[derive(Debug)]
pub struct Finished {
    /// The profile.
    pub profile: Profile,
    /// What was counted.
    pub statistics: Statistics,
    /// Where each lib's symbols come from.
    pub libs: Libs,
}

/// Where the symbols of the libs of a profile come from. While this lives, the files are held open.
#[derive(Debug)]
pub struct Libs {
    sources: Vec<(LibId, LibSource)>,
    _modules: ModuleStore,
}

impl Libs {
    /// Each lib and its source.
    pub fn sources(&self) -> &[(LibId, LibSource)] {
        &self.sources
    }
}

impl Stages {
    /// Opens a mapped file as soon as the mapping is heard of, long before its event's turn comes: the process
    /// may end, or the file go away.
    fn note_mapping(&mut self, event: &Event) {
        if let EventKind::Map(mapping) = &event.kind {
            self.dumps.open(mapping, &mut self.modules);
            self.modules.of_mapping(mapping);
        }
    }

    fn convert(&mut self, event: Event) {
        let (now, cpu) = (event.time, event.cpu);
        self.last_time = self.last_time.max(now);
        match event.kind {
            EventKind::Sample(sample) => {
                if self.wants((sample.pid, sample.tid), cpu, now) {
                    self.sample(now, cpu, &sample);
                }
            }
            EventKind::SwitchOut(sample) => self.switch_out(now, cpu, &sample),
            EventKind::SwitchIn { tid } => self.end_wait(tid, now),
            EventKind::Map(mapping) => self.map(&mapping, now),
            EventKind::Unmap { pid, start, len } => self.tracker.unmap(pid, start, len),
            EventKind::Fork { pid, tid, parent_pid, parent_tid } => {
                let replaced = self.tracker.fork(pid, tid, (parent_pid, parent_tid), now);
                if let Some(process) = replaced {
                    name_process(&mut self.builder, &process, self.options.start);
                }
            }
            EventKind::Name { pid, tid, name, exec } => self.name(now, (pid, tid), &name, exec),
            EventKind::Exit { pid, tid } => self.exit(now, (pid, tid)),
            EventKind::Total { pid, tid, cpu_time_ns } => {
                if self.wants((pid, tid), cpu, now) {
                    self.total(now, cpu, (pid, tid), cpu_time_ns);
                }
            }
            EventKind::Lost { records } => {
                self.statistics.lost += records;
                self.builder.meta_mut().lost_samples += records;
            }
            EventKind::Throttled => self.statistics.throttled += 1,
            EventKind::Marker(marker) => self.marker(now, &marker),
            EventKind::Counter(counter) => self.counter(now, &counter),
        }
    }

    fn map(&mut self, mapping: &Mapping, now: Timestamp) {
        self.tracker.map(mapping, now, &mut self.modules);
        if let Some(pid) = mapping.pid
            && let Some(dump) = self.dumps.open(mapping, &mut self.modules)
        {
            self.tracker.process(pid, now).jit.dumps.push(dump);
        }
    }

    fn name(&mut self, now: Timestamp, (pid, tid): (Pid, Tid), name: &str, exec: bool) {
        self.pool.before_new_name(self.tracker.process(pid, now), (pid, tid));
        self.tracker.name(pid, tid, name, exec, now);
        if let Some(arguments) = self.program_arguments.take(pid, now) {
            self.tracker.process(pid, now).arguments = arguments;
        }
    }

    fn exit(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        if !self.shape.reuse_threads {
            return self.tracker.exit(pid, tid, now);
        }
        let thread = self.tracker.process(pid, now).threads.get(&tid);
        let ends_now = thread.is_some_and(|thread| thread.end.is_none());
        self.tracker.exit(pid, tid, now);
        let process = self.tracker.process(pid, now);
        if ends_now {
            self.pool.give_back_thread(process, (pid, tid));
        }
        if ends_now && process.end.is_some() {
            self.pool.give_back_process(process);
        }
    }

    fn wants(&mut self, id: (Pid, Tid), cpu: Option<u32>, now: Timestamp) -> bool {
        let selection = &self.selection;
        if !selection.wants(id, cpu, now.0.saturating_sub(self.options.start.0)) {
            return false;
        }
        if !selection.looks_at_names() {
            return true;
        }
        let process = self.tracker.process(id.0, now);
        let thread = process.threads.get(&id.1).map_or("", |thread| &thread.name);
        selection.wants_name(&process.name, thread)
    }

    fn sample(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        let id = (sample.pid, sample.tid);
        if self.is_left_out(id) {
            return;
        }
        let period = sample.period_ns.max(1);
        let used = match sample.cpu_time_ns {
            Some(total) => self.thread(now, id).cpu_delta(cpu, total),
            None => period,
        };
        let Some(Share { weight, cpu_delta, off_cpu }) = self.share(now, sample, used) else { return };
        let truncated = self.walk_user_stack(now, sample);
        self.statistics.truncated += u64::from(truncated.is_some());
        self.place_frames(now, sample, truncated);
        self.statistics.samples += 1;
        let thread = self.profile_thread(now, id);
        let row = Row {
            thread,
            on_cpu: self.cpu_track(now, cpu, id),
            sample: profile::Sample { time: self.profile_time(now), cpu_delta, stack: None, weight, off_cpu },
        };
        let dumps = &self.tracker.process(sample.pid, now).jit.dumps;
        if self.places.iter().any(Place::is_unknown) && !self.dumps.are_read_up_to(dumps, now) {
            let (dumps, places) = (dumps.clone(), self.places.clone());
            self.waiting.push_back(Waiting { time: now, row, places, dumps });
        } else {
            self.add_row(row);
        }
    }

    /// The CPU that has a track of its own, and what the sample is called there.
    fn cpu_track(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid)) -> Option<(u32, String)> {
        let cpu = cpu.filter(|_| self.shape.cpu_threads)?;
        Some((cpu, cpu_label(&self.thread(now, id).name, id)))
    }

    /// Adds a sample with the stack that `places` are.
    fn add_row(&mut self, row: Row) {
        let sample = profile::Sample { stack: self.intern_places(), ..row.sample };
        self.builder.add_sample(row.thread, sample);
        if let Some((cpu, label)) = row.on_cpu {
            self.cpus.add_sample(&mut self.builder, cpu, &label, sample);
        }
    }

    /// What a sample stands for after `used` nanoseconds of CPU time; `None` where that is nothing yet.
    fn share(&mut self, now: Timestamp, sample: &Sample, used: u64) -> Option<Share> {
        let id = (sample.pid, sample.tid);
        let interval = self.interval();
        let waited = match sample.state {
            SampleState::Clocked => return Some(self.clocked_share(now, sample, used)),
            SampleState::Running { waited_ns } | SampleState::Waiting { waited_ns } => waited_ns,
        };
        let thread = self.thread(now, id);
        thread.unsampled.add(used);
        thread.waited.add(waited);
        thread.unshown_ns += used;
        let ran = matches!(sample.state, SampleState::Running { .. });
        let on_cpu = if ran { thread.unsampled.take_nearest(interval) } else { 0 };
        // A thread that has hardly run waits for a CPU, whatever it seemed to do.
        let weight = if on_cpu > 0 { on_cpu } else { thread.waited.take_nearest(interval) };
        (weight > 0).then(|| Share {
            weight,
            cpu_delta: std::mem::take(&mut thread.unshown_ns),
            off_cpu: on_cpu == 0,
        })
    }

    /// What a sample stands for that its thread's own clock has triggered.
    fn clocked_share(&mut self, now: Timestamp, sample: &Sample, used: u64) -> Share {
        let id = (sample.pid, sample.tid);
        let (interval, period) = (self.interval(), sample.period_ns.max(1));
        let (weight, cpu_delta) = if self.options.kernel_permitted {
            (self.thread(now, id).unsampled.weigh(used, interval), used)
        } else {
            // What is beyond the sample's own period was spent in the kernel.
            self.thread(now, id).unsampled.add(used.saturating_sub(period));
            let shown = self.show_not_permitted(now, id);
            (Balance::default().weigh(period, interval), used.saturating_sub(shown))
        };
        Share { weight, cpu_delta, off_cpu: false }
    }

    /// A thread has left the CPU. What left it before and was not seen to come back must have come back.
    fn switch_out(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        if self.wants((sample.pid, sample.tid), cpu, now) {
            let stack = self.stack(now, sample);
            self.waits.begin(sample.tid, Wait { pid: sample.pid, since: now, stack });
        }
    }

    /// A thread is on a CPU again: if it waited, that becomes a sample.
    fn end_wait(&mut self, tid: Tid, now: Timestamp) {
        if let Some(wait) = self.waits.end(tid) {
            self.add_wait(tid, wait, now);
        }
    }

    fn end_all_waits(&mut self) {
        for (tid, wait) in self.waits.end_all() {
            self.add_wait(tid, wait, self.last_time);
        }
    }

    /// Adds a sample for the whole intervals that a thread has waited, at the beginning of its wait.
    fn add_wait(&mut self, tid: Tid, wait: Wait, end: Timestamp) {
        let (interval, id) = (self.interval(), (wait.pid, tid));
        let waited = &mut self.thread(wait.since, id).waited;
        waited.add(end.0.saturating_sub(wait.since.0));
        let weight = waited.take_intervals(interval);
        if weight > 0 {
            let thread = self.profile_thread(wait.since, id);
            let time = self.profile_time(wait.since);
            let row = profile::Sample { time, cpu_delta: 0, stack: wait.stack, weight, off_cpu: true };
            self.builder.add_sample(thread, row);
        }
    }

    fn interval(&self) -> u64 {
        self.options.meta.interval.max(1)
    }

    fn profile_time(&self, time: Timestamp) -> u64 {
        time.0.saturating_sub(self.options.start.0)
    }

    fn thread(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) -> &mut Thread {
        self.tracker.process(pid, now).thread(tid, now)
    }

    /// Whether nothing of a thread is in the profile.
    fn is_left_out(&self, (pid, tid): (Pid, Tid)) -> bool {
        self.shape.main_threads_only && pid.0 != tid.0
    }

    /// A thread has ended: what it used since its last sample was never sampled.
    fn total(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid), total: u64) {
        if self.is_left_out(id) {
            return;
        }
        let used = self.thread(now, id).cpu_delta(cpu, total);
        self.thread(now, id).unsampled.add(used);
        if !self.options.kernel_permitted {
            self.show_not_permitted(now, id);
        }
        let interval = self.interval();
        let process = self.tracker.process(id.0, now);
        let program = std::mem::take(&mut process.name);
        let left = self.leftovers.settle(&program, &mut process.thread(id.1, now).unsampled, interval);
        process.name = program;
        self.add_stand_in(now, id, well_known::NOT_SAMPLED, left);
    }

    /// Adds a sample for the thread's whole intervals without one, which it spent in the kernel. Gives back how
    /// much CPU time that is.
    fn show_not_permitted(&mut self, now: Timestamp, id: (Pid, Tid)) -> u64 {
        let interval = self.interval();
        let intervals = self.thread(now, id).unsampled.take_intervals(interval);
        self.add_stand_in(now, id, well_known::KERNEL_NOT_PERMITTED, intervals);
        u64::from(intervals) * interval
    }

    /// Adds a sample whose stack is only a name.
    fn add_stand_in(&mut self, now: Timestamp, id: (Pid, Tid), label: &str, weight: u32) {
        if weight == 0 {
            return;
        }
        let thread = self.profile_thread(now, id);
        let category = match label {
            well_known::KERNEL_NOT_PERMITTED => self.interner.category(Mode::Kernel),
            _ => self.builder.add_category(well_known::OTHER, CategoryColor::Grey),
        };
        let stack = Some(self.builder.intern_label(None, label, Some(category)));
        let cpu_delta = u64::from(weight) * self.interval();
        let time = self.profile_time(now);
        self.builder.add_sample(thread, profile::Sample { time, cpu_delta, stack, weight, off_cpu: false });
    }

    fn marker(&mut self, now: Timestamp, marker: &Marker) {
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
        self.markers.add(&mut self.builder, thread, marker, timing);
    }

    fn counter(&mut self, now: Timestamp, counter: &Counter) {
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
    fn profile_thread(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) -> ThreadIndex {
        let process = self.tracker.process(pid, now);
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

    /// The stack of a sample, with the names that are known by now.
    fn stack(&mut self, now: Timestamp, sample: &Sample) -> Option<StackId> {
        let truncated = self.walk_user_stack(now, sample);
        self.place_frames(now, sample, truncated);
        self.intern_places()
    }

    /// Puts the sample's whole stack into `places`, from the root of the user's part to the innermost frame of the
    /// kernel's.
    fn place_frames(&mut self, now: Timestamp, sample: &Sample, truncated: Option<String>) {
        if self.shape.fold_recursive_prefix {
            fold_recursive_prefix(&mut self.frames);
        }
        self.places.clear();
        self.places.extend(truncated.map(Place::Truncated));
        let process = self.tracker.process(sample.pid, now);
        if let UserStack::Named(name) = sample.user {
            self.places.push(Place::Label(name));
        }
        for frame in self.frames.iter().rev() {
            let address = frame.lookup_address();
            let range = process.find(address).copied();
            let range = match range {
                Some(Range { module: Some(_), .. }) => range,
                _ => find_made_code(process, &mut self.dumps, &mut self.modules, (sample.pid, address, now)),
            };
            self.places.push(Place::Code(range, address, Mode::User));
        }
        for (depth, &address) in sample.kernel_stack.iter().enumerate().rev() {
            let address = if depth == 0 { address } else { Avma(address.0.wrapping_sub(1)) };
            self.places.push(Place::Code(self.tracker.find_kernel(address).copied(), address, Mode::Kernel));
        }
    }

    /// The stack that `places` are.
    fn intern_places(&mut self) -> Option<StackId> {
        let mut stack = None;
        for place in &self.places {
            stack = Some(match place {
                Place::Label(name) => {
                    let category = self.interner.category(Mode::User);
                    self.builder.intern_label(stack, name, Some(category))
                }
                Place::Truncated(reason) => {
                    let category = self.interner.category(Mode::User);
                    self.builder.intern_label(stack, &well_known::truncated(reason), Some(category))
                }
                Place::Code(range, address, mode) => {
                    let place = (range.as_ref(), *address);
                    self.interner.push(&mut self.builder, &self.modules, stack, place, *mode)
                }
            });
        }
        stack
    }

    /// Adds the samples whose jitdumps have been read far enough; at the end, all of them.
    fn release_waiting(&mut self, is_end: bool) {
        let is_ready = |dumps: &JitDumps, waiting: &mut Waiting| {
            is_end || dumps.are_read_up_to(&waiting.dumps, waiting.time)
        };
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| is_ready(&self.dumps, waiting)) {
            let Waiting { time, row, places, dumps } = waiting;
            self.places = places;
            for place in &mut self.places {
                if let Place::Code(range, address, Mode::User) = place
                    && range.is_none()
                {
                    *range = self.dumps.find(&dumps, *address, time);
                }
            }
            self.add_row(row);
        }
    }

    /// Puts the frames of the user's part of the stack into `frames`, innermost first. Gives back why the walk
    /// could not reach the root.
    fn walk_user_stack(&mut self, now: Timestamp, sample: &Sample) -> Option<String> {
        self.frames.clear();
        match &sample.user {
            UserStack::None | UserStack::Named(_) => None,
            UserStack::Walked(addresses) => {
                let (first, rest) = addresses.split_first()?;
                self.frames.push(FrameAddress::InstructionPointer(*first));
                self.frames.extend(rest.iter().map(|&address| FrameAddress::ReturnAddress(address)));
                None
            }
            UserStack::Copied { registers, stack, limited } => {
                let registers = match **registers {
                    Registers::X86_64(values) => nyquist_unwind::Registers::X86_64(values),
                    Registers::X86_64Partial { values, known } => {
                        nyquist_unwind::Registers::X86_64Partial { values, known }
                    }
                    Registers::X86 { ip } => {
                        self.frames.push(FrameAddress::InstructionPointer(Avma(u64::from(ip))));
                        return Some("32-bit code is not unwound".to_owned());
                    }
                    Registers::Aarch64(_) => return Some("this architecture is not unwound".to_owned()),
                };
                let process = self.tracker.process(sample.pid, now);
                if sample.in_kernel && process.is_between_programs(registers.instruction_pointer(), stack) {
                    return None;
                }
                let memory = StackCopy { start: registers.stack_pointer(), bytes: stack };
                let space = process.address_space(&self.modules, &self.dumps);
                let frames = &mut self.frames;
                let end = self.unwinder.walk(space, &registers, &memory, &mut |frame| frames.push(frame));
                truncation(end, *limited, stack.len())
            }
        }
    }

    fn lib_sources(&self) -> Vec<(LibId, LibSource)> {
        let source = |module| self.modules.get(module).source(&self.dumps);
        let mut sources: Vec<_> = self.interner.libs().map(|(lib, module)| (lib, source(module))).collect();
        sources.sort_by_key(|(lib, _)| *lib);
        sources
    }

    /// Gives the processes and threads of a profile the names and lifetimes that are known by now.
    fn named_builder(&self, mut builder: ProfileBuilder) -> ProfileBuilder {
        let mut processes: Vec<_> = self.tracker.processes().map(|(_, process)| process).collect();
        // Of several that share a row, the last one says when it ended.
        processes.sort_unstable_by_key(|process| process.start);
        for process in processes {
            name_process(&mut builder, process, self.options.start);
        }
        let meta = builder.meta_mut();
        meta.profiling_start = Some(0);
        meta.profiling_end = Some(self.profile_time(self.last_time) + BEYOND_LAST);
        meta.extra.push(ExtraInfo {
            section: "Recording".to_owned(),
            label: "Lost samples".to_owned(),
            value: self.statistics.lost.to_string(),
        });
        builder
    }

    fn evict(&mut self, before: Timestamp) {
        // Their stacks are numbers of the tables that are made anew.
        self.end_all_waits();
        let before = self.profile_time(before);
        let old = std::mem::replace(&mut self.builder, ProfileBuilder::new(Meta::default()));
        self.builder = evict::samples_before(old, before);
        self.interner.forget_frames();
    }
}

/// The range of code that was made while the program ran, and that no file holds.
fn find_made_code(
    process: &mut Process,
    dumps: &mut JitDumps,
    modules: &mut ModuleStore,
    (pid, address, now): (Pid, Avma, Timestamp),
) -> Option<Range> {
    if process.jit.dumps.is_empty() {
        return process.jit.find_in_map(pid, address, now, modules);
    }
    dumps.find(&process.jit.dumps, address, now)
}

fn name_process(builder: &mut ProfileBuilder, process: &Process, zero: Timestamp) {
    let since_zero = |time: Timestamp| time.0.saturating_sub(zero.0);
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

/// The root of a stack on a CPU's thread: whose it is.
fn cpu_label(name: &str, (pid, tid): (Pid, Tid)) -> String {
    format!("{name} (process {}, thread {})", pid.0, tid.0)
}

/// Leaves one of equal frames at the root: those of a recursion whose beginning is not there.
fn fold_recursive_prefix(frames: &mut Vec<FrameAddress>) {
    while let [.., before, root] = frames.as_slice()
        && before.lookup_address() == root.lookup_address()
    {
        frames.pop();
    }
}

/// Why a walk did not reach the root, in words.
fn truncation(end: WalkEnd, limited: bool, stack_len: usize) -> Option<String> {
    match end {
        WalkEnd::Root => None,
        WalkEnd::Truncated(nyquist_unwind::Reason::StackCopyEnded) if limited => {
            Some(format!("stack copy ended after {} kB", stack_len / 1024))
        }
        WalkEnd::Truncated(reason) => Some(reason.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MappedFile;
    use nyquist_object::FileOffset;

    const MS: u64 = 1_000_000;

    fn converter(kernel_permitted: bool) -> Converter {
        let meta = Meta { interval: MS, ..Meta::default() };
        Converter::new(Options { start: Timestamp(0), kernel_permitted, meta })
    }

    fn at(time_ms: u64, kind: EventKind) -> Event {
        Event { time: Timestamp(time_ms * MS), cpu: Some(0), kind }
    }

    fn sample(pid: u32, tid: u32, used_ms: Option<u64>, stack: &[u64]) -> EventKind {
        EventKind::Sample(Sample {
            pid: Pid(pid),
            tid: Tid(tid),
            in_kernel: false,
            state: SampleState::Clocked,
            period_ns: MS,
            cpu_time_ns: used_ms.map(|used| used * MS),
            kernel_stack: Vec::new(),
            user: UserStack::Walked(stack.iter().map(|&address| Avma(address)).collect()),
        })
    }

    /// Each sample of each thread as "outermost;...;innermost weight".
    fn folded(profile: &Profile) -> Vec<String> {
        let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
        let line = |sample: &profile::Sample| {
            let mut names: Vec<_> = sample
                .stack
                .into_iter()
                .flat_map(|stack| profile.stack_frames(stack))
                .map(|frame| profile.func_name(frame.func))
                .collect();
            names.reverse();
            format!("{} {}", names.join(";"), sample.weight)
        };
        samples.map(line).collect()
    }

    fn name(pid: u32, tid: u32, name: &str, exec: bool) -> EventKind {
        EventKind::Name { pid: Pid(pid), tid: Tid(tid), name: name.to_owned(), exec }
    }

    fn fork(pid: u32, tid: u32, parent: u32) -> EventKind {
        EventKind::Fork { pid: Pid(pid), tid: Tid(tid), parent_pid: Pid(parent), parent_tid: Tid(parent) }
    }

    fn exit(pid: u32, tid: u32) -> EventKind {
        EventKind::Exit { pid: Pid(pid), tid: Tid(tid) }
    }

    /// The profile of these events, one each millisecond: each row as "process.thread samples start-end".
    fn rows(shape: Shape, events: Vec<EventKind>) -> Vec<String> {
        let mut converter = converter(true).shaped(shape);
        for (time, event) in (1..).zip(events) {
            converter.push(at(time, event));
        }
        let profile = converter.finish().profile;
        let row = |thread: &profile::Thread| {
            let process = &profile.process(thread.process).name;
            let end = thread.end.map_or_else(String::new, |end| (end / MS).to_string());
            format!("{process}.{} {} {}-{end}", thread.name, thread.samples.len(), thread.start / MS)
        };
        profile.threads().iter().map(row).collect()
    }

    const REUSE: Shape = Shape {
        reuse_threads: true,
        fold_recursive_prefix: false,
        cpu_threads: false,
        main_threads_only: false,
        program_arguments: 0,
    };

    #[test]
    fn threads_of_one_name_share_a_row_where_they_do_not_overlap() {
        let events = || {
            let mut events = vec![name(1, 1, "app", true), sample(1, 1, None, &[1])];
            for tid in [2, 3] {
                events.extend([fork(1, tid, 1), name(1, tid, "worker", false), sample(1, tid, None, &[2])]);
            }
            events.extend([exit(1, 3), fork(1, 4, 1), name(1, 4, "worker", false), sample(1, 4, None, &[3])]);
            events
        };
        assert_eq!(rows(Shape::default(), events()).len(), 4);
        assert_eq!(
            rows(REUSE, events()),
            ["app.app 1 1-", "worker.worker 1 3-", "worker.worker 2 6-"]
                .map(|row| row.replace("worker.", "app."))
        );
    }

    #[test]
    fn processes_of_one_name_share_a_row_where_they_do_not_overlap() {
        let mut events = vec![name(1, 1, "sh", true)];
        for pid in [2, 3] {
            events.extend([fork(pid, pid, 1), name(pid, pid, "true", true), sample(pid, pid, None, &[1])]);
            events.push(exit(pid, pid));
        }
        // Nothing was sampled while it lived.
        events.extend([fork(4, 4, 1), name(4, 4, "true", true), exit(4, 4)]);
        events.push(EventKind::Total { pid: Pid(4), tid: Tid(4), cpu_time_ns: 3 * MS });
        assert_eq!(rows(REUSE, events), ["true.true 3 2-12"]);
    }

    #[test]
    fn a_row_is_left_to_its_name_when_the_name_changes() {
        let mut events = vec![name(1, 1, "sh", true), sample(1, 1, None, &[1])];
        for (pid, program) in [(2, "ls"), (3, "cat")] {
            // The child is a shell until it becomes another program.
            events.extend([fork(pid, pid, 1), sample(pid, pid, None, &[1])]);
            events.extend([name(pid, pid, program, true), sample(pid, pid, None, &[2]), exit(pid, pid)]);
        }
        assert_eq!(rows(REUSE, events), ["sh.sh 1 1-", "ls.ls 2 3-7", "cat.cat 2 8-12"]);
    }

    #[test]
    fn only_main_threads_where_they_alone_are_wanted() {
        let mut events = vec![sample(1, 1, None, &[1]), sample(1, 2, None, &[1]), sample(3, 3, None, &[1])];
        events.push(EventKind::Total { pid: Pid(1), tid: Tid(5), cpu_time_ns: 9 * MS });
        let shape = Shape { main_threads_only: true, ..Shape::default() };
        assert_eq!(rows(shape, events).len(), 2);
    }

    #[test]
    fn the_base_of_a_recursion_is_folded() {
        let check = |stack: &[u64], expected: &str| {
            let mut converter =
                converter(true).shaped(Shape { fold_recursive_prefix: true, ..Shape::default() });
            converter.push(at(1, sample(1, 1, None, stack)));
            assert_eq!(folded(&converter.finish().profile), [expected]);
        };
        check(&[0x30, 0x11, 0x11, 0x11], "0x10;0x30 1");
        check(&[0x30, 0x11, 0x11, 0x21], "0x20;0x10;0x10;0x30 1");
        check(&[0x11], "0x11 1");
    }

    #[test]
    fn a_cpu_has_what_ran_on_it() {
        let mut converter = converter(true).shaped(Shape { cpu_threads: true, ..Shape::default() });
        converter.push(at(0, name(1, 1, "app", true)));
        for (time, cpu) in [(1, 0), (2, 3), (3, 0)] {
            converter.push(Event { cpu: Some(cpu), ..at(time, sample(1, 1, None, &[0x10])) });
        }
        let profile = converter.finish().profile;
        let rows: Vec<_> = profile
            .threads()
            .iter()
            .map(|thread| {
                (profile.process(thread.process).name.as_str(), thread.name.as_str(), thread.samples.len())
            })
            .collect();
        assert_eq!(
            rows,
            [("app", "app", 3), ("CPU", "All CPUs", 3), ("CPU", "CPU 0", 2), ("CPU", "CPU 3", 1)]
        );
        assert_eq!(folded(&profile)[3], "app (process 1, thread 1);0x10 1");
    }

    #[test]
    fn the_last_sample_lies_before_the_end() {
        let mut converter = converter(true);
        converter.push(at(7, sample(1, 1, None, &[0x10])));
        let profile = converter.finish().profile;
        let last = profile.threads()[0].samples[0].time;
        assert!(profile.meta().profiling_end > Some(last));
    }

    #[test]
    fn return_addresses_are_looked_up_a_byte_earlier() {
        let mut converter = converter(true);
        converter.push(at(1, sample(1, 1, None, &[0x30, 0x20, 0x10])));
        assert_eq!(folded(&converter.finish().profile), ["0xf;0x1f;0x30 1"]);
    }

    #[test]
    fn kernel_frames_are_on_top_of_user_frames() {
        let mut converter = converter(true);
        let EventKind::Sample(mut both) = sample(1, 1, None, &[0x10]) else { unreachable!() };
        both.kernel_stack = vec![Avma(0xffff_0000_0000_0010), Avma(0xffff_0000_0000_0021)];
        converter.push(at(1, EventKind::Sample(both)));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), ["0x10;0xffff000000000020;0xffff000000000010 1"]);
        let categories: Vec<_> = profile
            .frames()
            .iter()
            .map(|frame| profile.category(frame.category.unwrap().category).name.as_str())
            .collect();
        assert_eq!(categories, ["User", "Kernel", "Kernel"]);
    }

    #[test]
    fn samples_are_of_the_thread_that_they_name_and_processes_have_lifetimes() {
        let mut converter = converter(true);
        let name = |pid, name: &str| EventKind::Name {
            pid: Pid(pid),
            tid: Tid(pid),
            name: name.to_owned(),
            exec: true,
        };
        let fork = EventKind::Fork { pid: Pid(2), tid: Tid(2), parent_pid: Pid(1), parent_tid: Tid(1) };
        converter.push(at(0, name(1, "parent")));
        converter.push(at(2, fork));
        converter.push(at(3, name(2, "child")));
        converter.push(at(4, sample(2, 2, None, &[1])));
        converter.push(at(5, EventKind::Exit { pid: Pid(2), tid: Tid(2) }));
        converter.push(at(6, sample(1, 1, None, &[2])));
        let profile = converter.finish().profile;
        let processes: Vec<_> = profile
            .processes()
            .iter()
            .map(|process| (process.name.as_str(), process.start / MS, process.end.map(|end| end / MS)))
            .collect();
        assert_eq!(processes, [("child", 2, Some(5)), ("parent", 0, None)]);
    }

    #[test]
    fn a_number_that_is_used_again_gives_two_processes() {
        let mut converter = converter(true);
        let fork = || EventKind::Fork { pid: Pid(2), tid: Tid(2), parent_pid: Pid(1), parent_tid: Tid(1) };
        converter.push(at(1, fork()));
        converter.push(at(2, sample(2, 2, None, &[1])));
        converter.push(at(3, EventKind::Exit { pid: Pid(2), tid: Tid(2) }));
        converter.push(at(4, fork()));
        converter.push(at(5, sample(2, 2, None, &[1])));
        let profile = converter.finish().profile;
        let pids: Vec<_> = profile.processes().iter().map(|process| process.pid.as_str()).collect();
        assert_eq!(pids, ["2", "2.1"]);
        assert_eq!(profile.processes()[0].end, Some(3 * MS));
    }

    #[test]
    fn cpu_time_without_samples_is_the_kernels_where_it_may_not_be_sampled() {
        let mut converter = converter(false);
        converter.push(at(1, sample(1, 1, Some(1), &[1])));
        converter.push(at(9, sample(1, 1, Some(6), &[1])));
        converter.push(at(12, EventKind::Total { pid: Pid(1), tid: Tid(1), cpu_time_ns: 9 * MS }));
        let profile = converter.finish().profile;
        assert_eq!(
            folded(&profile),
            ["0x1 1", "[kernel: not permitted] 4", "0x1 1", "[kernel: not permitted] 3"]
        );
        let deltas: Vec<_> =
            profile.threads()[0].samples.iter().map(|sample| sample.cpu_delta / MS).collect();
        assert_eq!(deltas, [1, 4, 1, 3]);
    }

    #[test]
    fn a_thread_that_was_never_sampled_shows_up_by_its_total() {
        let mut converter = converter(false);
        converter.push(at(5, EventKind::Exit { pid: Pid(7), tid: Tid(7) }));
        converter.push(at(5, EventKind::Total { pid: Pid(7), tid: Tid(7), cpu_time_ns: 2 * MS + 1 }));
        assert_eq!(folded(&converter.finish().profile), ["[kernel: not permitted] 2"]);
    }

    #[test]
    fn where_the_kernel_is_sampled_a_sample_stands_for_the_time_since_the_last() {
        let mut converter = converter(true);
        converter.push(at(1, sample(1, 1, Some(1), &[1])));
        converter.push(at(9, sample(1, 1, Some(6), &[1])));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), ["0x1 1", "0x1 5"]);
        assert_eq!(profile.threads()[0].samples[1].cpu_delta, 5 * MS);
    }

    #[test]
    fn looks_by_the_wall_clock_keep_running_and_waiting_apart() {
        use SampleState::{Running, Waiting};
        let mut converter = converter(true);
        let look = |used_ms, state, address| {
            let EventKind::Sample(sample) = sample(1, 1, Some(used_ms), &[address]) else { unreachable!() };
            EventKind::Sample(Sample { state, ..sample })
        };
        converter.push(at(1, look(1, Running { waited_ns: 0 }, 1)));
        // It has run and blocked since: that time is the next running sample's.
        converter.push(at(9, look(3, Waiting { waited_ns: 6 * MS }, 2)));
        converter.push(at(10, look(4, Running { waited_ns: 0 }, 3)));
        // It seems to run, but has waited for a CPU.
        converter.push(at(12, look(4, Running { waited_ns: 2 * MS }, 4)));
        // Neither is worth a sample yet.
        converter.push(at(12, look(4, Running { waited_ns: 1 }, 5)));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), ["0x1 1", "0x2 6", "0x3 3", "0x4 2"]);
        let samples = &profile.threads()[0].samples;
        let off_cpu: Vec<_> = samples.iter().map(|sample| sample.off_cpu).collect();
        assert_eq!(off_cpu, [false, true, false, true]);
        let deltas: Vec<_> = samples.iter().map(|sample| sample.cpu_delta / MS).collect();
        assert_eq!(deltas, [1, 2, 1, 0]);
    }

    #[test]
    fn processes_too_short_for_a_sample_show_up_together() {
        let mut converter = converter(true);
        for pid in 10..20 {
            let name = EventKind::Name { pid: Pid(pid), tid: Tid(pid), name: "true".to_owned(), exec: true };
            converter.push(at(1, name));
            let total = EventKind::Total { pid: Pid(pid), tid: Tid(pid), cpu_time_ns: MS * 7 / 10 };
            converter.push(at(2, total));
        }
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), vec!["[not sampled] 1"; 7]);
        assert!(profile.processes().iter().all(|process| process.name == "true"));
    }

    #[test]
    fn a_stack_that_cannot_be_finished_says_why() {
        let mut converter = converter(true);
        let mapping = Mapping {
            pid: Some(Pid(1)),
            start: Avma(0x1000),
            len: 0x1000,
            offset: FileOffset(0),
            path: "//anon".to_owned(),
            identity: MappedFile::Unknown,
        };
        converter.push(at(0, EventKind::Map(mapping)));
        let mut registers = [0; 17];
        registers[16] = 0x1234;
        let EventKind::Sample(mut cut) = sample(1, 1, None, &[]) else { unreachable!() };
        cut.user = UserStack::Copied {
            registers: Box::new(Registers::X86_64(registers)),
            stack: bytes::Bytes::new(),
            limited: false,
        };
        converter.push(at(1, EventKind::Sample(cut)));
        let finished = converter.finish();
        assert_eq!(folded(&finished.profile), ["(truncated: no unwind information);0x1234 1"]);
        assert_eq!(finished.statistics.truncated, 1);
    }

    #[test]
    fn in_the_middle_of_exec_there_is_no_user_stack() {
        let mut converter = converter(true);
        let exec = EventKind::Name { pid: Pid(1), tid: Tid(1), name: "new".to_owned(), exec: true };
        converter.push(at(1, exec));
        let mut registers = [0; 17];
        registers[16] = 0x1234;
        let EventKind::Sample(mut sample) = sample(1, 1, None, &[]) else { unreachable!() };
        sample.in_kernel = true;
        sample.kernel_stack = vec![Avma(0xffff_0000_0000_0010)];
        sample.user = UserStack::Copied {
            registers: Box::new(Registers::X86_64(registers)),
            stack: bytes::Bytes::from_static(&[0; 8]),
            limited: false,
        };
        converter.push(at(2, EventKind::Sample(sample)));
        assert_eq!(folded(&converter.finish().profile), ["0xffff000000000010 1"]);
    }

    #[test]
    fn a_snapshot_is_the_profile_so_far() {
        let mut converter = converter(true);
        converter.push(at(1, sample(1, 1, None, &[1])));
        converter.push(at(5, sample(1, 1, None, &[2])));
        converter.advance(Timestamp(2 * MS));
        assert_eq!(folded(&converter.snapshot()), ["0x1 1"]);
        assert_eq!(folded(&converter.finish().profile), ["0x1 1", "0x2 1"]);
    }

    #[test]
    fn evicting_forgets_old_samples_and_their_stacks() {
        let mut converter = converter(true);
        for time in 1..10 {
            converter.push(at(time, sample(1, 1, None, &[time, 0x101])));
        }
        converter.advance(Timestamp(100 * MS));
        converter.evict(Timestamp(8 * MS));
        converter.push(at(100, sample(1, 1, None, &[3, 0x101])));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), ["0x100;0x8 1", "0x100;0x9 1", "0x100;0x3 1"]);
        assert_eq!(profile.stacks().len(), 4);
    }

    #[test]
    fn what_was_lost_is_in_the_profile() {
        let mut converter = converter(true);
        converter.push(at(1, EventKind::Lost { records: 3 }));
        converter.push(at(2, EventKind::Lost { records: 4 }));
        let finished = converter.finish();
        assert_eq!(finished.statistics.lost, 7);
        assert_eq!(finished.profile.meta().lost_samples, 7);
    }

    fn leave(pid: u32, stack: &[u64]) -> EventKind {
        let EventKind::Sample(sample) = sample(pid, pid, None, stack) else { unreachable!() };
        EventKind::SwitchOut(sample)
    }

    #[test]
    fn waiting_is_apart_from_cpu_time() {
        let mut converter = converter(true);
        converter.push(at(1, sample(1, 1, None, &[0x10])));
        converter.push(at(2, leave(1, &[0x20])));
        converter.push(at(7, EventKind::SwitchIn { tid: Tid(1) }));
        converter.push(at(8, leave(1, &[0x30])));
        converter.push(at(10, sample(1, 1, None, &[0x10])));
        converter.push(at(11, leave(2, &[0x40])));
        converter.push(at(15, sample(1, 1, None, &[0x10])));
        let profile = converter.finish().profile;
        assert_eq!(folded(&profile), ["0x10 1", "0x20 5", "0x30 2", "0x10 1", "0x10 1", "0x40 4"]);
        let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
        let waits: Vec<_> = samples.map(|sample| (sample.off_cpu, sample.time / MS)).collect();
        assert_eq!(waits, [(false, 1), (true, 2), (true, 8), (false, 10), (false, 15), (true, 11)]);
    }

    #[test]
    fn short_waits_add_up() {
        let mut converter = converter(true);
        for time in 0..10 {
            let leave = Event { time: Timestamp(time * MS), ..at(0, leave(1, &[0x20])) };
            let back = EventKind::SwitchIn { tid: Tid(1) };
            converter.push(leave);
            converter.push(Event { time: Timestamp(time * MS + MS * 3 / 10), ..at(0, back) });
        }
        assert_eq!(folded(&converter.finish().profile), ["0x20 1"; 3]);
    }

    #[test]
    fn only_samples_that_are_wanted_are_converted() {
        let check = |selection: Selection, expected: &[&str]| {
            let mut converter = converter(true).with_selection(selection);
            let name = |pid, tid, name: &str| EventKind::Name {
                pid: Pid(pid),
                tid: Tid(tid),
                name: name.to_owned(),
                exec: false,
            };
            converter.push(at(0, name(1, 1, "server")));
            converter.push(at(0, name(1, 2, "worker")));
            converter.push(at(0, name(3, 3, "client")));
            converter.push(at(1, sample(1, 1, None, &[1])));
            converter.push(at(2, sample(1, 2, None, &[2])));
            converter.push(Event { cpu: Some(4), ..at(3, sample(3, 3, None, &[3])) });
            assert_eq!(folded(&converter.finish().profile), expected);
        };
        check(Selection::default(), &["0x1 1", "0x2 1", "0x3 1"]);
        check(Selection { pids: vec![Pid(1)], ..Selection::default() }, &["0x1 1", "0x2 1"]);
        check(Selection { tids: vec![Tid(2), Tid(3)], ..Selection::default() }, &["0x2 1", "0x3 1"]);
        check(Selection { cpus: vec![4], ..Selection::default() }, &["0x3 1"]);
        check(Selection { names: vec!["worker".into()], ..Selection::default() }, &["0x2 1"]);
        check(Selection { names: vec!["server".into()], ..Selection::default() }, &["0x1 1", "0x2 1"]);
        let time = Some(crate::TimeRange { start: 2 * MS, end: 3 * MS });
        check(Selection { time, ..Selection::default() }, &["0x2 1"]);
        check(Selection { pids: vec![Pid(1)], cpus: vec![4], ..Selection::default() }, &[]);
    }

    #[test]
    fn losses_without_a_record_of_their_own_are_in_the_profile() {
        for (noted, expected) in [(2, 3), (9, 9)] {
            let mut converter = converter(true);
            converter.push(at(1, EventKind::Lost { records: 3 }));
            converter.advance(Timestamp(100 * MS));
            converter.note_lost(noted);
            let finished = converter.finish();
            assert_eq!(
                (finished.statistics.lost, finished.profile.meta().lost_samples),
                (expected, expected)
            );
        }
    }
}
