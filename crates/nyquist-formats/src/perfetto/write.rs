//! Writes a profile as a trace of Perfetto.

use std::collections::hash_map::Entry;
use std::io::{self, Write};

use nyquist_profile::{FrameId, LibId, Profile, Sample, StackId, ThreadIndex, well_known};
use prost::Message as _;
use rustc_hash::{FxHashMap, FxHashSet};

use super::clocks::BOOTTIME;
use super::message::{
    Callstack, Clock, ClockSnapshot, Defaults, Frame, InternedData, InternedString, Mapping, Packet,
    PerfSample, Process, SampleDefaults, Thread, Timebase, Track,
};
use super::read::CPU_CLOCK;
use crate::pprof::unit_name;
use crate::select::one_kind;
use crate::{SourcePaths, source_path};

/// The only sequence of packets.
pub(super) const SEQUENCE: u32 = 1;

/// The flags of a packet that begins the sequence's state, and of one that needs it.
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// Ids from here on are for processes and threads whose ids are not numbers, or are reused.
const MADE_UP: i32 = 1 << 30;

/// The most written samples for each sample, on average.
const MAX_WRITTEN_PER_SAMPLE: u64 = 8;

/// Writes the profile: each sample on the CPU is a `PerfSample` with an interned stack, and each marker a
/// slice or an instant of a track of its thread. In a profile with only waiting, these samples are written.
/// Samples of this format have no weight, so a sample that stands for several intervals is repeated within
/// its time. If this would make more than eight times as many samples, each written sample stands for more.
/// Then the sums of each thread are exact to one written sample. O(samples + stacks × depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut writer = PerfettoWriter::new(profile, paths, out);
    writer.write_head()?;
    for index in 0..profile.threads().len() {
        writer.write_thread(ThreadIndex::from_index(index))?;
    }
    Ok(())
}

pub(super) struct PerfettoWriter<'a, Out> {
    pub(super) profile: &'a Profile,
    paths: SourcePaths<'a>,
    out: &'a mut Out,
    /// How many intervals a written sample stands for.
    intervals: u64,
    used_ids: FxHashSet<(i32, i64)>,
    made_up: i64,
    /// The number of the last track.
    pub(super) tracks: u64,
    /// The data that was interned since the previous packet.
    interned: InternedData,
    texts: [FxHashMap<String, u64>; 3],
    libs: FxHashMap<LibId, u64>,
    frames: FxHashMap<FrameId, u64>,
    stacks: FxHashMap<StackId, u64>,
    has_no_stack: bool,
}

/// The tables of texts, by their indices in `texts`.
#[derive(Clone, Copy)]
enum TextTable {
    Functions,
    Paths,
    Sources,
}

fn intervals_of_a_sample(profile: &Profile) -> u64 {
    let accepts = one_kind(profile);
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples).filter(|it| accepts(it));
    let (count, weight) = samples
        .fold((0_u64, 0_u64), |(count, weight), sample| (count + 1, weight.saturating_add(sample.weight)));
    weight.div_ceil(count.saturating_mul(MAX_WRITTEN_PER_SAMPLE).max(1)).max(1)
}

impl<'a, Out: Write> PerfettoWriter<'a, Out> {
    fn new(profile: &'a Profile, paths: SourcePaths<'a>, out: &'a mut Out) -> Self {
        Self {
            profile,
            paths,
            out,
            intervals: intervals_of_a_sample(profile),
            used_ids: FxHashSet::default(),
            made_up: MADE_UP.into(),
            tracks: 0,
            interned: InternedData::default(),
            texts: Default::default(),
            libs: FxHashMap::default(),
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
            has_no_stack: false,
        }
    }

    pub(super) fn packet(&mut self, packet: Packet) -> io::Result<()> {
        let mut bytes = vec![1 << 3 | 2];
        Packet { sequence: SEQUENCE, ..packet }.encode_length_delimited(&mut bytes)?;
        self.out.write_all(&bytes)
    }

    /// Writes the data that all packets refer to: the clocks, and the samples' measure.
    fn write_head(&mut self) -> io::Result<()> {
        let meta = self.profile.meta();
        let period = meta.interval.saturating_mul(self.intervals);
        let is_waiting = self.profile.threads().iter().flat_map(|it| &it.samples).any(|it| it.off_cpu)
            && self
                .profile
                .threads()
                .iter()
                .flat_map(|it| &it.samples)
                .all(|it| it.off_cpu || it.weight == 0);
        let timebase = if is_waiting {
            Timebase { period, name: b"off_cpu/nanoseconds".to_vec(), ..Timebase::default() }
        } else if meta.measure.is_cpu_time() {
            Timebase { period, counter: CPU_CLOCK, name: b"cpu-clock".to_vec(), ..Timebase::default() }
        } else {
            let name = format!("{}/{}", meta.measure.name, unit_name(meta.measure.unit));
            Timebase { period, name: name.into_bytes(), ..Timebase::default() }
        };
        let clock = |id, time| Clock { id, time, ..Clock::default() };
        let realtime = (meta.start_time > 0).then(|| clock(1, meta.start_time.saturating_mul(1000)));
        let clocks = [clock(BOOTTIME, 0)].into_iter().chain(realtime).collect();
        let defaults = Defaults {
            clock: BOOTTIME,
            sample: Some(SampleDefaults { timebase: Some(timebase) }),
            ..Defaults::default()
        };
        self.packet(Packet {
            timestamp: Some(0),
            sequence_flags: STATE_CLEARED,
            defaults: Some(defaults),
            clocks: Some(ClockSnapshot { clocks, primary: BOOTTIME }),
            ..Packet::default()
        })
    }

    fn write_thread(&mut self, index: ThreadIndex) -> io::Result<()> {
        let profile = self.profile;
        let thread = profile.thread(index);
        let process = profile.process(thread.process);
        let made_up = MADE_UP + i32::try_from(thread.process.index()).unwrap_or(0);
        let pid = process.pid.parse().ok().filter(|&pid: &i32| pid > 0).unwrap_or(made_up);
        let tid = self.tid(pid, &thread.tid);
        let track = self.add_track(Track {
            thread: Some(Thread { pid, tid, name: thread.name.clone().into_bytes(), ..Thread::default() }),
            ..Track::default()
        })?;
        if thread.is_main {
            let name = process.name.clone().into_bytes();
            let process = Process { pid, command: vec![name.clone()], name };
            self.add_track(Track { process: Some(process), ..Track::default() })?;
        }
        let accepts = one_kind(profile);
        // The remainder of a sample is added to the next one.
        let mut left = 0;
        for sample in thread.samples.iter().filter(|it| accepts(it)) {
            left = sample.weight.saturating_add(left);
            let count = left / self.intervals;
            left %= self.intervals;
            self.write_sample((pid, tid), &sample, count)?;
        }
        self.write_markers(thread, track)
    }

    /// An id that no earlier thread of the process has.
    fn tid(&mut self, pid: i32, tid: &str) -> i64 {
        let declared = tid.parse().ok().filter(|&tid: &i64| (0..i64::from(MADE_UP)).contains(&tid));
        match declared.filter(|&tid| self.used_ids.insert((pid, tid))) {
            Some(tid) => tid,
            None => {
                self.made_up += 1;
                self.made_up
            }
        }
    }

    /// Adds a track, and returns its number.
    pub(super) fn add_track(&mut self, track: Track) -> io::Result<u64> {
        self.tracks += 1;
        let id = self.tracks;
        self.packet(Packet { track: Some(Track { id, ..track }), ..Packet::default() })?;
        Ok(id)
    }

    fn write_sample(&mut self, (pid, tid): (i32, i64), sample: &Sample, count: u64) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let leaf = sample.stack.map(|stack| self.profile.frame(self.profile.stack(stack).frame));
        let category = leaf.and_then(|leaf| leaf.category);
        let category = category.map(|pair| self.profile.category(pair.category).name.as_str());
        let perf = PerfSample {
            pid: pid.unsigned_abs(),
            tid: u32::try_from(tid).unwrap_or(u32::MAX),
            callstack: match sample.stack {
                Some(stack) => self.stack(stack),
                None => self.no_stack(),
            },
            cpu_mode: if category == Some(well_known::KERNEL) { 1 } else { 2 },
            ..PerfSample::default()
        };
        let interval = self.profile.meta().interval.saturating_mul(self.intervals);
        for place in (0..count).rev() {
            let before =
                if self.profile.meta().measure.is_cpu_time() { interval.saturating_mul(place) } else { 0 };
            let interned = std::mem::take(&mut self.interned);
            self.packet(Packet {
                timestamp: Some(sample.time.saturating_sub(before)),
                sequence_flags: NEEDS_STATE,
                interned: (interned != InternedData::default()).then_some(interned),
                sample: Some(perf),
                ..Packet::default()
            })?;
        }
        Ok(())
    }

    /// The number of a text, which is interned if it is new. 0 for an empty text.
    fn text(&mut self, table: TextTable, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let numbers = &mut self.texts[table as usize];
        if let Some(&number) = numbers.get(text) {
            return number;
        }
        let id = numbers.len() as u64 + 1;
        numbers.insert(text.to_owned(), id);
        let interned = match table {
            TextTable::Functions => &mut self.interned.function_names,
            TextTable::Paths => &mut self.interned.mapping_paths,
            TextTable::Sources => &mut self.interned.source_paths,
        };
        interned.push(InternedString { id, text: text.as_bytes().to_vec() });
        id
    }

    fn stack(&mut self, stack: StackId) -> u64 {
        if let Some(&id) = self.stacks.get(&stack) {
            return id;
        }
        let profile = self.profile;
        let mut frames: Vec<u64> =
            profile.ancestors(stack).map(|node| self.frame(profile.stack(node).frame)).collect();
        frames.reverse();
        let id = self.stacks.len() as u64 + 1;
        self.stacks.insert(stack, id);
        self.interned.callstacks.push(Callstack { id, frames });
        id
    }

    /// The stack of samples without one. Its number is after all others. It has a frame, because readers need
    /// one.
    fn no_stack(&mut self) -> u64 {
        let id = u64::from(u32::MAX);
        if !self.has_no_stack {
            self.has_no_stack = true;
            let function_name = self.text(TextTable::Functions, "(unknown)");
            self.interned.frames.push(Frame { id, function_name, ..Frame::default() });
            self.interned.callstacks.push(Callstack { id, frames: vec![id] });
        }
        id
    }

    fn frame(&mut self, frame: FrameId) -> u64 {
        if let Some(&id) = self.frames.get(&frame) {
            return id;
        }
        let profile = self.profile;
        let row = profile.frame(frame);
        let function_name = self.text(TextTable::Functions, profile.func_name(row.func));
        let source = profile.frame_source(row).map(|source| source_path(profile, source, self.paths));
        let source_path = self.text(TextTable::Sources, &source.unwrap_or_default());
        let mapping = profile.func(row.func).lib.map_or(0, |lib| self.lib(lib));
        let id = self.frames.len() as u64 + 1;
        self.frames.insert(frame, id);
        self.interned.frames.push(Frame {
            id,
            function_name,
            mapping,
            address: row.address.map(u64::from),
            source_path,
            line: row.line.unwrap_or(0),
        });
        id
    }

    fn lib(&mut self, lib: LibId) -> u64 {
        let next = self.libs.len() as u64 + 1;
        let Entry::Vacant(entry) = self.libs.entry(lib) else { return self.libs[&lib] };
        entry.insert(next);
        let lib = self.profile.lib(lib);
        let path = if lib.path.is_empty() { &lib.name } else { &lib.path };
        let path = self.text(TextTable::Paths, path);
        let build_id = lib.code_id.as_deref().and_then(bytes_of_hex).map_or(0, |text| {
            self.interned.build_ids.push(InternedString { id: next, text });
            next
        });
        self.interned.mappings.push(Mapping { id: next, build_id, path: vec![path], ..Mapping::default() });
        next
    }
}

/// Decodes hex digits to bytes.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
