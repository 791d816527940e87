//! Common code of all readers: a builder that makes threads by their ids, frames from the known data, and
//! weights from durations.

use nyquist_profile::{
    CategoryColor, CategoryId, CategoryPair, ExtraInfo, Frame, FrameId, Func, FuncKind, Lib, LibId, Marker,
    MarkerTiming, Meta, Process, ProcessIndex, ProfileBuilder, Sample, Source, StackId, StringId, Thread,
    ThreadIndex, Unit, well_known,
};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note};

/// A millisecond in ns, which is the interval of a file without times.
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// The most threads with rows of their own. A few bytes of a file can name one, and a row takes some hundred bytes.
#[cfg(not(test))]
const MAX_THREADS: usize = 1 << 17;
#[cfg(test)]
const MAX_THREADS: usize = 1 << 10;

/// The category of just-in-time compiled code of which nothing else is known.
pub(crate) const JIT: &str = "JIT";

/// Builds a profile from the data of a file.
pub(crate) struct Importer {
    builder: ProfileBuilder,
    user: CategoryId,
    kernel: CategoryId,
    processes: FxHashMap<String, ProcessIndex>,
    threads: FxHashMap<(String, String), ThreadIndex>,
    /// The number of threads. Until the interval is known, a sample's weight is the time it stands for, in ns.
    thread_count: usize,
    /// The row of all threads beyond [`MAX_THREADS`].
    shared_row: Option<ThreadIndex>,
    notes: Vec<Note>,
}

/// A position in code, as far as a file knows it.
#[derive(Clone, Copy, Default)]
pub(crate) struct CodePosition<'a> {
    /// The function's name.
    pub name: &'a str,
    pub lib: Option<LibId>,
    /// The source file.
    pub file: Option<&'a str>,
    /// The line at which the function begins.
    pub start_line: Option<u32>,
    /// The line executed.
    pub line: Option<u32>,
    /// The column executed.
    pub column: Option<u32>,
    /// Relative to the lib.
    pub address: Option<u32>,
    pub inline_depth: u16,
    /// Whether it is kernel code.
    pub is_kernel: bool,
    /// Whether a just-in-time compiler made it.
    pub is_jit: bool,
    /// The kind of code.
    pub kind: FuncKind,
}

/// A thread, as far as a file knows it.
#[derive(Clone, Copy, Default)]
pub(crate) struct ThreadName<'a> {
    pub pid: &'a str,
    pub process: &'a str,
    pub tid: &'a str,
    pub thread: &'a str,
}

impl Importer {
    /// An importer of a file of `format`, such as `a folded file`.
    pub(crate) fn new(product: &str, format: &str) -> Self {
        let mut builder = ProfileBuilder::new(Meta {
            product: product.into(),
            interval: MILLISECOND,
            profiling_start: Some(0),
            symbolicated: true,
            imported_from: Some(format.into()),
            ..Meta::default()
        });
        let user = builder.add_category(well_known::USER, CategoryColor::Yellow);
        let kernel = builder.add_category(well_known::KERNEL, CategoryColor::Orange);
        Self {
            builder,
            user,
            kernel,
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            thread_count: 0,
            shared_row: None,
            notes: Vec::new(),
        }
    }

    /// The metadata of the recording, for changes.
    pub(crate) fn meta_mut(&mut self) -> &mut Meta {
        self.builder.meta_mut()
    }

    /// The builder, for features of a single format.
    pub(crate) fn builder(&mut self) -> &mut ProfileBuilder {
        &mut self.builder
    }

    /// A text that was interned.
    #[cfg(feature = "parquet")]
    pub(crate) fn text(&self, id: StringId) -> &str {
        self.builder.profile().string(id)
    }

    /// Adds a note for the user.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Adds a note about things that were left out, if there are any.
    pub(crate) fn note_left_out(&mut self, count: u64, what: impl Into<String>) {
        if count > 0 {
            self.notes.push(Note::LeftOut { count, what: what.into() });
        }
    }

    /// Changes a thread's name to a later one. The main thread's name is also that of its process.
    pub(crate) fn rename_thread(&mut self, thread: ThreadIndex, name: &str) {
        let it = self.builder.thread_mut(thread);
        if it.name != name {
            name.clone_into(&mut it.name);
        }
        let (process, is_main) = (it.process, it.is_main);
        let process = self.builder.process_mut(process);
        if is_main && process.name != name {
            name.clone_into(&mut process.name);
        }
    }

    /// The thread with these ids, which is added if it is new. The first known name stays. Of very many threads, the
    /// last ones are one.
    pub(crate) fn thread(&mut self, name: ThreadName<'_>) -> ThreadIndex {
        let key = (name.pid.to_owned(), name.tid.to_owned());
        if let Some(&thread) = self.threads.get(&key) {
            return thread;
        }
        if self.threads.len() >= MAX_THREADS {
            return self.shared_row();
        }
        let index = self.add_thread(name);
        self.threads.insert(key, index);
        index
    }

    fn shared_row(&mut self) -> ThreadIndex {
        const NAME: &str = "further threads";
        if let Some(row) = self.shared_row {
            return row;
        }
        let row = self.add_thread(ThreadName { pid: NAME, process: NAME, tid: NAME, thread: NAME });
        self.note(Note::SharedRow { most: MAX_THREADS });
        self.shared_row = Some(row);
        row
    }

    fn add_thread(&mut self, name: ThreadName<'_>) -> ThreadIndex {
        let process = self.process(name.pid, name.process);
        let mut thread = Thread::new(process, name.tid, name.thread);
        thread.is_main = name.pid == name.tid;
        self.thread_count += 1;
        self.builder.add_thread(thread)
    }

    fn process(&mut self, pid: &str, name: &str) -> ProcessIndex {
        if let Some(&process) = self.processes.get(pid) {
            return process;
        }
        let process = Process { pid: pid.into(), name: name.into(), ..Process::default() };
        let index = self.builder.add_process(process);
        self.processes.insert(pid.into(), index);
        index
    }

    /// The lib with this path. The last part of the path is its name.
    pub(crate) fn lib(&mut self, path: &str, build_id: Option<&str>) -> LibId {
        let name = path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path);
        self.builder.add_lib(Lib {
            name: name.into(),
            path: path.into(),
            debug_name: name.into(),
            debug_path: path.into(),
            code_id: build_id.filter(|id| !id.is_empty()).map(Into::into),
            ..Lib::default()
        })
    }

    /// The frame of this position. The address is the name of a function without a name.
    pub(crate) fn frame(&mut self, code: &CodePosition<'_>) -> FrameId {
        let name = (!code.name.is_empty()).then(|| self.builder.intern_string(code.name));
        let file = code.file.filter(|file| !file.is_empty()).map(|file| self.builder.intern_string(file));
        self.frame_of(name, file, code)
    }

    /// As [`frame`](Self::frame), for a name and a source file that are already interned. Those in `code` are
    /// ignored.
    pub(crate) fn frame_of(
        &mut self,
        name: Option<StringId>,
        file: Option<StringId>,
        code: &CodePosition<'_>,
    ) -> FrameId {
        self.frame_in(name, file, code, None)
    }

    /// As [`frame_of`](Self::frame_of), for a line that is in `line_file`, if that is given, and not in the
    /// function's file.
    pub(crate) fn frame_in(
        &mut self,
        name: Option<StringId>,
        file: Option<StringId>,
        code: &CodePosition<'_>,
        line_file: Option<StringId>,
    ) -> FrameId {
        let name = name.unwrap_or_else(|| match code.address {
            Some(address) => self.builder.intern_string(&format!("{address:#x}")),
            None => self.builder.intern_string("(unknown)"),
        });
        let source = file.map(|filename| self.builder.intern_source(Source { filename }));
        let line = code.start_line.filter(|&line| line > 0);
        let func =
            self.builder.intern_func(Func { source, line, kind: code.kind, ..Func::new(name, code.lib) });
        let category = self.category(code);
        let line_file = line_file.map(|filename| self.builder.intern_source(Source { filename }));
        self.builder.intern_frame(Frame {
            address: code.address.filter(|_| code.lib.is_some()),
            inline_depth: code.inline_depth,
            category: Some(CategoryPair::from(category)),
            func,
            native_symbol: None,
            source: line_file,
            line: code.line.filter(|&line| line > 0),
            column: code.column.filter(|&column| column > 0),
        })
    }

    fn category(&mut self, code: &CodePosition<'_>) -> CategoryId {
        match (code.is_kernel, code.is_jit) {
            (true, _) => self.kernel,
            (false, true) => self.builder.add_category(JIT, CategoryColor::LightBlue),
            (false, false) => self.user,
        }
    }

    /// The stack that `frame` makes on top of `prefix`.
    pub(crate) fn stack(&mut self, prefix: Option<StackId>, frame: FrameId) -> StackId {
        self.builder.intern_stack(prefix, frame)
    }

    /// The number of stacks so far.
    pub(crate) fn stack_count(&self) -> usize {
        self.builder.profile().stacks().len()
    }

    /// Adds a sample with an exact time: from `start` on, for `duration` ns, the thread had this stack. A
    /// duration of 0 adds nothing.
    pub(crate) fn span(
        &mut self,
        thread: ThreadIndex,
        start: u64,
        (stack, off_cpu): (Option<StackId>, bool),
        duration: u64,
    ) {
        self.builder.meta_mut().has_exact_times = true;
        if duration > 0 {
            let sample = Sample::new(start.saturating_add(duration), stack, 0);
            self.push(thread, Sample { off_cpu, ..sample }, duration);
        }
    }

    /// Adds a sample of a sampler. It stands for `duration` ns, which ended at about `time`.
    pub(crate) fn sample(&mut self, thread: ThreadIndex, time: u64, stack: Option<StackId>, duration: u64) {
        self.push(thread, Sample::new(time, stack, 0), duration);
    }

    /// Adds a sample that stands for `duration` ns of waiting.
    pub(crate) fn off_cpu_sample(
        &mut self,
        thread: ThreadIndex,
        time: u64,
        stack: Option<StackId>,
        duration: u64,
    ) {
        self.push(thread, Sample { off_cpu: true, ..Sample::new(time, stack, 0) }, duration);
    }

    fn push(&mut self, thread: ThreadIndex, sample: Sample, duration: u64) {
        self.builder.add_sample(thread, Sample { weight: duration, ..sample });
    }

    /// The profile. The interval is the one that the file states, if all durations are multiples of it.
    /// Otherwise it is the longest time of which all are multiples.
    pub(crate) fn finish(mut self, declared: Option<u64>) -> ImportedProfile {
        let all = self.builder.profile().threads().iter().flat_map(|thread| &thread.samples);
        let common = common_interval(all.map(|sample| sample.weight));
        let fits = |declared: &u64| *declared > 0 && common.is_multiple_of(*declared);
        let interval = declared.filter(fits).unwrap_or(common);
        self.builder.meta_mut().interval = interval;
        let has_exact_times = self.builder.profile().meta().has_exact_times;
        // Time that passed before a sampler's first sample is no part of the recording.
        let before = |duration: u64| if has_exact_times { duration } else { 0 };
        let is_time = self.builder.profile().meta().measure.unit == Unit::Time;
        // The first sample's own interval was cut off with it, and is added at the end. A wait ends at its time.
        let after = |sample: &Sample| {
            if has_exact_times || !is_time || sample.off_cpu { 0 } else { interval }
        };
        let threads = self.builder.profile().threads().iter();
        let firsts = threads.filter_map(|thread| first_time(thread, before));
        let zero = firsts.min().unwrap_or(0);
        let mut end = self.builder.profile().meta().profiling_end.unwrap_or(0);
        for index in (0..self.thread_count).map(ThreadIndex::from_index) {
            let thread = self.builder.thread_mut(index);
            thread.samples.map_each(|sample| Sample {
                time: sample.time - zero,
                weight: sample.weight / interval,
                ..sample
            });
            let ends = thread.samples.iter().map(|it| it.time.saturating_add(after(&it)).saturating_add(1));
            end = ends.fold(end, u64::max);
            for marker in &mut thread.markers {
                marker.timing = earlier(marker.timing, zero);
                end = end.max(last_time(marker.timing).saturating_add(1));
            }
        }
        self.builder.meta_mut().profiling_end = Some(end);
        self.builder.meta_mut().extra = self.notes.iter().map(information).collect();
        ImportedProfile { profile: self.builder.finish(), notes: self.notes }
    }
}

impl Importer {
    /// As [`finish`](Self::finish), for allocations: their sites are the callers of what only passes on to an
    /// allocator, as in recordings.
    pub(crate) fn finish_allocations(self, declared: Option<u64>) -> ImportedProfile {
        let ImportedProfile { profile, notes } = self.finish(declared);
        ImportedProfile { profile: profile.at_allocation_callers(), notes }
    }
}

/// A note as a line of the profile's information panel, so that it is saved with the profile.
fn information(note: &Note) -> ExtraInfo {
    ExtraInfo { section: "Import".into(), label: "Note".into(), value: note.to_string() }
}

/// When the first sample or marker of a thread begins. `before` is how long before its time a sample of this duration
/// begins.
fn first_time(thread: &Thread, before: impl Fn(u64) -> u64) -> Option<u64> {
    let markers = thread.markers.iter().map(|marker: &Marker| match marker.timing {
        MarkerTiming::Instant(time)
        | MarkerTiming::Interval(time, _)
        | MarkerTiming::IntervalStart(time)
        | MarkerTiming::IntervalEnd(time) => time,
    });
    let starts = thread.samples.iter().map(|sample| sample.time.saturating_sub(before(sample.weight)));
    starts.chain(markers).min()
}

fn last_time(timing: MarkerTiming) -> u64 {
    match timing {
        MarkerTiming::Instant(time)
        | MarkerTiming::Interval(_, time)
        | MarkerTiming::IntervalStart(time)
        | MarkerTiming::IntervalEnd(time) => time,
    }
}

fn earlier(timing: MarkerTiming, by: u64) -> MarkerTiming {
    let shift = |time: u64| time.saturating_sub(by);
    match timing {
        MarkerTiming::Instant(time) => MarkerTiming::Instant(shift(time)),
        MarkerTiming::Interval(start, end) => MarkerTiming::Interval(shift(start), shift(end)),
        MarkerTiming::IntervalStart(time) => MarkerTiming::IntervalStart(shift(time)),
        MarkerTiming::IntervalEnd(time) => MarkerTiming::IntervalEnd(shift(time)),
    }
}

/// The greatest common divisor of all durations, so that each is a whole number of intervals.
fn common_interval(durations: impl Iterator<Item = u64>) -> u64 {
    let divisor = durations.fold(0, greatest_common_divisor);
    if divisor == 0 { MILLISECOND } else { divisor }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_divides_all_durations() {
        let check =
            |durations: &[u64], expected| assert_eq!(common_interval(durations.iter().copied()), expected);
        check(&[], MILLISECOND);
        check(&[0], MILLISECOND);
        check(&[10, 20, 0, 50], 10);
        check(&[7, 11], 1);
        check(&[1, u64::from(u32::MAX) * 3], 1);
    }

    /// Two samples a millisecond apart are two milliseconds, whatever their weights are.
    #[test]
    fn a_recording_ends_with_its_last_wait() {
        let mut importer = Importer::new("x", "y");
        let thread = importer.thread(ThreadName { pid: "1", tid: "1", ..ThreadName::default() });
        importer.sample(thread, 5_000_000, None, MILLISECOND);
        importer.sample(thread, 6_000_000, None, 4 * MILLISECOND);
        let before = importer.builder().profile().clone();
        assert_eq!(before.threads().len(), 1);
        importer.off_cpu_sample(thread, 7_500_000, None, 900 * MILLISECOND);
        assert_eq!(importer.finish(None).profile.duration(), 2_500_001);
    }

    #[test]
    fn very_many_threads_share_a_row() {
        let mut importer = Importer::new("x", "y");
        for number in 0..2 * MAX_THREADS {
            let id = number.to_string();
            let thread = importer.thread(ThreadName { pid: &id, tid: &id, ..ThreadName::default() });
            importer.sample(thread, 0, None, 1);
        }
        let read = importer.finish(None);
        let threads = read.profile.threads();
        assert_eq!((threads.len(), read.profile.processes().len()), (MAX_THREADS + 1, MAX_THREADS + 1));
        assert_eq!(threads.iter().map(|thread| thread.samples.len()).max(), Some(MAX_THREADS));
        assert_eq!(read.notes, [Note::SharedRow { most: MAX_THREADS }]);
    }

    #[test]
    fn times_begin_at_the_first_sample() {
        let mut importer = Importer::new("x", "y");
        let thread = importer.thread(ThreadName { pid: "1", tid: "1", ..ThreadName::default() });
        importer.span(thread, 700, (None, false), 30);
        importer.span(thread, 500, (None, false), 20);
        importer.span(thread, 800, (None, false), 0);
        let profile = importer.finish(None).profile;
        let samples: Vec<_> = profile.threads()[0].samples.iter().map(|s| (s.time, s.weight)).collect();
        assert_eq!(samples, [(20, 2), (230, 3)]);
        assert!(profile.meta().has_exact_times);
        assert_eq!((profile.meta().interval, profile.meta().profiling_end), (10, Some(231)));
    }
}
