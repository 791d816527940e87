//! Code that is made while the program runs: which function is at an address, at a time.
//!
//! Just-in-time compilers name their code in one of two files. A *jitdump* holds each piece of code with the time at which
//! it was made or moved; it becomes a lib whose relative addresses are the code's places in the file. A *perf map* only has
//! addresses and names, and is read when the recording ends; it becomes a lib for each 2 GiB of addresses that it names.

mod dump;
mod id;
mod instructions;
mod map_file;
mod naming;
mod runtime;
mod saved;
mod symbols;
#[cfg(test)]
pub(crate) mod test_dump;

pub(crate) use dump::{Dump, MadeCode};
pub(crate) use id::DumpId;
use instructions::ReadInstructions;
pub(crate) use map_file::MapFile;
pub(crate) use naming::name_frame;
pub use saved::{RefusedSideFile, SavedCode, SavedCodeError};
pub use symbols::JitSymbols;

use crate::event::{Mapping, Pid, Timestamp};
use crate::mappings::Range;
use crate::modules::{ModuleIndex, ModuleStore, is_without_file};
use crate::side_file::user_of;
use crate::time_namespace::ahead_ns;
use nyquist_object::Avma;
use nyquist_unwind::AddressSpace;
use std::path::Path;
use std::sync::Arc;

/// How long a process is left alone after it was found to have no perf map, in ns.
const PROBE_INTERVAL: u64 = 100_000_000;

/// The span of one lib made of a perf map: relative addresses have 31 bits.
const WINDOW: u64 = 1 << 31;

/// The place of a jitdump in [`JitDumps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DumpIndex(usize);

/// All jitdumps that were heard of. A child goes on with its parent's.
#[derive(Debug, Default)]
pub(crate) struct JitDumps {
    dumps: Vec<Dump>,
    /// Whether each is removed from its folder when it has been opened.
    pub(crate) unlink: bool,
}

impl JitDumps {
    /// Opens the jitdump that a mapping shows, of a process of that user: compilers map the file, so that the recorder hears
    /// of it.
    pub(crate) fn open(
        &mut self,
        mapping: &Mapping,
        user: Option<u32>,
        modules: &mut ModuleStore,
    ) -> Option<DumpIndex> {
        if !is_dump(mapping) {
            return None;
        }
        if let Some(known) = modules.known_jitdump(mapping, user) {
            return self.dumps.iter().position(|dump| dump.module() == known).map(DumpIndex);
        }
        let index = DumpIndex(self.dumps.len());
        let id = DumpId::default();
        let (module, found) = modules.add_jitdump(mapping, user, (index, Arc::clone(&id)))?;
        if let (true, Some(pid)) = (self.unlink && modules.are_live(), mapping.pid) {
            // One that cannot be removed is only left behind.
            let _ = user_of(pid).or(user).map(|user| found.remove(user));
        }
        let ahead_ns = mapping.pid.filter(|_| modules.are_live()).map_or(0, |pid| ahead_ns(pid.0));
        let dump = Dump::new(Arc::new(found.file), module, mapping.pid, modules.budget().charge());
        self.dumps.push(dump.with_clock_ahead(ahead_ns).telling(id));
        Some(index)
    }

    /// Reads what was written since the last call.
    pub(crate) fn read_on(&mut self) {
        self.dumps.iter_mut().for_each(Dump::read_on);
    }

    /// The functions that were made before a time and not given by the last call: the process, the time, and the name as the compiler wrote it.
    /// Nothing of dumps whose times are those of another clock.
    pub(crate) fn take_new_functions(&mut self, before: Timestamp) -> Vec<(Pid, Timestamp, String)> {
        self.dumps.iter_mut().flat_map(|dump| dump.take_new_functions(before)).collect()
    }

    /// The modules of those that hold more than the budget allows, or what is too large to be read.
    pub(crate) fn too_large(&self) -> impl Iterator<Item = ModuleIndex> {
        self.dumps.iter().filter(|dump| dump.is_too_large()).map(Dump::module)
    }

    /// What the jitdump at an index of these says of its code.
    pub(crate) fn symbols(&self, index: DumpIndex) -> Option<JitSymbols> {
        Some(JitSymbols::of_dump(self.dumps.get(index.0)?))
    }

    /// Whether all code that these hold and that was made by `time` is known.
    pub(crate) fn are_read_up_to(&self, dumps: &[DumpIndex], time: Timestamp) -> bool {
        dumps.iter().filter_map(|index| self.dumps.get(index.0)).all(|dump| dump.is_read_up_to(time))
    }

    /// The code with unwind information that has appeared in a jitdump after the first `known` pieces.
    pub(crate) fn unwindable(&self, dump: DumpIndex, known: usize) -> &[MadeCode] {
        self.dumps.get(dump.0).and_then(|dump| dump.unwindable().get(known..)).unwrap_or_default()
    }

    /// The code that is at an address at a time, as a range of its lib. Times must not go back.
    pub(crate) fn find(&mut self, dumps: &[DumpIndex], address: Avma, time: Timestamp) -> Option<Range> {
        dumps.iter().rev().find_map(|index| self.dumps.get_mut(index.0)?.find(address, time))
    }
}

/// Whether a mapping may be of code that is made while the process runs, or of a file that tells of it.
pub(crate) fn may_be_made_code(mapping: &Mapping) -> bool {
    is_without_file(mapping) || is_dump(mapping)
}

/// Whether a mapping is called as that of a jitdump is.
pub(crate) fn is_dump(mapping: &Mapping) -> bool {
    let name = Path::new(&mapping.path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.strip_prefix("jit-").and_then(|name| name.strip_suffix(".dump"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is known of one process's just-in-time compilers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessJit {
    /// Its jitdumps, in the order in which they were heard of.
    pub(crate) dumps: Vec<DumpIndex>,
    /// Of each of them, how many pieces of code with unwind information the unwinder knows.
    mapped: Vec<usize>,
    map: Option<Arc<MapFile>>,
    /// The libs made of its perf map.
    windows: Vec<Range>,
    /// When to look for a perf map again.
    next_probe: Timestamp,
    /// The user whose rights the process has, as it was when code was first made.
    pub(crate) user: Option<u32>,
    /// Whether its runtime writes the perf map only when it ends.
    maps_at_end: bool,
    /// What was read of the code for want of unwind information.
    instructions: ReadInstructions,
    /// Whether something was, or another one who follows the process knows more of its code.
    knows_code: bool,
}

impl ProcessJit {
    /// Takes note of what is mapped: a runtime, perhaps, or other code than before.
    pub(crate) fn note_mapping(&mut self, mapping: &Mapping) {
        self.maps_at_end |= mapping.path.ends_with("/libjvm.so");
        self.instructions.forget(mapping.start, mapping.len);
    }

    /// Whether more is known of code of the process than what is mapped: a jitdump describes it, or its instructions were read.
    pub(crate) fn knows_code(&self) -> bool {
        self.knows_code || !self.dumps.is_empty()
    }

    /// More is known of code of the process, if not by who follows it here.
    pub(crate) fn note_known_code(&mut self) {
        self.knows_code = true;
    }

    /// What a child has that goes on with a copy of this process's memory.
    pub(crate) fn for_child(&self) -> Self {
        Self { next_probe: Timestamp::default(), ..self.clone() }
    }

    /// Tells the unwinder of the code that has appeared since the last call.
    pub(crate) fn map_unwindable(&mut self, dumps: &JitDumps, space: &mut AddressSpace) {
        self.mapped.resize(self.dumps.len(), 0);
        for (&dump, mapped) in self.dumps.iter().zip(&mut self.mapped) {
            let new = dumps.unwindable(dump, *mapped);
            *mapped += new.len();
            for MadeCode { start, len, module } in new {
                space.map(*start, *len, *start, Arc::clone(module));
            }
        }
    }

    /// Reads the instructions of made code around an address that a walk could not go beyond, and tells the unwinder of them.
    /// Says whether that is worth another walk. What a jitdump describes is left as it is.
    pub(crate) fn read_instructions(
        &mut self,
        at: (Pid, Avma, Timestamp),
        range: &Range,
        space: &mut AddressSpace,
    ) -> bool {
        let reads = self.dumps.is_empty() && self.instructions.read_around(at, range, space);
        self.knows_code |= reads;
        reads
    }

    /// The part of the process's perf map that names an address which no file holds. `None` if there is no map.
    pub(crate) fn find_in_map(
        &mut self,
        pid: Pid,
        address: Avma,
        now: Timestamp,
        modules: &mut ModuleStore,
    ) -> Option<Range> {
        if let Some(range) = self.windows.iter().find(|range| range.start <= address && address < range.end) {
            return Some(*range);
        }
        let map = self.map(pid, now, modules)?;
        let start = Avma(address.0 & !(WINDOW - 1));
        let module = modules.add_perf_map(&map, pid, start)?;
        let end = Avma(start.0.saturating_add(WINDOW));
        let range = Range { start, end, module: Some((module, start)) };
        self.windows.push(range);
        Some(range)
    }

    fn map(&mut self, pid: Pid, now: Timestamp, modules: &ModuleStore) -> Option<Arc<MapFile>> {
        if self.map.is_none() && now >= self.next_probe {
            self.next_probe = Timestamp(now.0.saturating_add(PROBE_INTERVAL));
            self.map = modules.find_perf_map(pid, self.user, self.maps_at_end).map(Arc::new);
        }
        self.map.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::test_dump::TestDump;
    use crate::event::{Event, EventKind, Pid, Sample, Tid, Timestamp, UserStack};
    use crate::{Converter, Filter, Options, Progress, Shape, Symbols, symbolicate};
    use nyquist_object::Avma;
    use nyquist_profile::{MarkerTiming, MarkerValue, Meta, Profile, firefox};
    use nyquist_symbols::{Finder, KernelSymbols};
    use std::num::NonZeroUsize;
    use std::process::{Command, Stdio};
    use std::{fs, io};

    fn converter() -> Converter {
        let meta = Meta { interval: 1_000_000, ..Meta::default() };
        Converter::new(Options { start: Timestamp(0), kernel_permitted: true, meta })
    }

    fn event(time: u64, kind: EventKind) -> Event {
        Event { time: Timestamp(time), cpu: Some(0), kind }
    }

    fn sample(pid: u32, address: u64) -> EventKind {
        EventKind::Sample(Sample::in_user_code(Pid(pid), UserStack::Walked(vec![Avma(address)])))
    }

    /// The function, its category and its file of each sample, by time.
    fn names(converter: Converter) -> Vec<String> {
        let profile = named(converter);
        profile.threads()[0].samples.iter().map(|sample| describe(&profile, sample.stack)).collect()
    }

    fn named(converter: Converter) -> Profile {
        let finished = converter.finish();
        let finder = Finder::default();
        let symbols = Symbols {
            finder: &finder,
            kernel: |_| KernelSymbols::parse(io::empty(), io::empty(), &[]),
            threads: NonZeroUsize::MIN,
        };
        symbolicate(finished.profile, finished.libs.sources(), symbols, &Progress::default()).profile
    }

    fn describe(profile: &Profile, stack: Option<nyquist_profile::StackId>) -> String {
        let frame = profile.frame(profile.stack(stack.unwrap()).frame);
        let func = profile.func(frame.func);
        let category = &profile.category(frame.category.unwrap().category).name;
        let file = func.source.map_or("", |source| profile.string(profile.source(source).filename));
        format!("{} {category} {file}:{}", profile.string(func.name), frame.line.unwrap_or_default())
    }

    #[test]
    fn a_sample_waits_until_its_code_is_noted() {
        let own = std::process::id();
        let dump = TestDump::new(0);
        let mut converter = converter();
        converter.push(event(1, EventKind::Map(dump.mapping(Pid(own)))));
        converter.push(event(100, sample(own, 0x7000_0004)));
        converter.push(event(300, sample(own, 0x7000_0004)));
        converter.advance(Timestamp(400));
        assert_eq!(converter.snapshot().threads()[0].samples.len(), 0, "nothing is written yet");
        dump.load(50, 0x7000_0000, 16, 1, "JS:~first /x.js:1:2");
        dump.lines(199, 0x7000_0000, &[(0x7000_0000, 7, "/x.js")]);
        dump.load(200, 0x7000_0000, 16, 2, "JS:*second /x.js:5:2");
        converter.advance(Timestamp(401));
        assert_eq!(converter.snapshot().threads()[0].samples.len(), 1, "up to the last record");
        assert_eq!(
            names(converter),
            ["first JavaScript (interpreter) /x.js:0", "second JavaScript (optimized) /x.js:7"]
        );
    }

    #[test]
    fn functions_of_scripts_are_marked_as_javascript_in_the_file_that_is_written() {
        let own = std::process::id();
        let dump = TestDump::new(0);
        dump.load(1, 0x7000_0000, 16, 1, "JS:~script /x.js:1:2");
        dump.load(2, 0x7000_0100, 16, 2, "Builtin:ArrayMap");
        let mut converter = converter();
        converter.push(event(3, EventKind::Map(dump.mapping(Pid(own)))));
        converter.push(event(100, sample(own, 0x7000_0004)));
        converter.push(event(101, sample(own, 0x7000_0104)));
        let mut written = Vec::new();
        let options = firefox::WriteOptions { gzip: false, ..firefox::WriteOptions::default() };
        firefox::write(&named(converter), options, &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        for part in [r#""isJS":[true,false]"#, r#""usesOnlyOneStackType":false"#] {
            assert!(written.contains(part), "{part}: {written}");
        }
    }

    #[test]
    fn a_jitdump_is_read_on_when_it_is_no_longer_in_its_folder() {
        let own = std::process::id();
        let dump = TestDump::new(0);
        dump.load(1, 0x7000_0000, 16, 1, "JS:~first /x.js:1:2");
        let mut converter = converter().unlinking_jitdumps(true);
        converter.push(event(2, EventKind::Map(dump.mapping(Pid(own)))));
        assert!(!dump.is_there());
        converter.push(event(100, sample(own, 0x7000_0004)));
        assert_eq!(names(converter), ["first JavaScript (interpreter) /x.js:0"]);
    }

    #[test]
    fn functions_in_a_jitdump_are_markers_at_the_times_that_they_were_made() {
        let own = std::process::id();
        let check = |clock, expected: &[(u64, &str)]| {
            let dump = TestDump::new(clock);
            let mut converter = converter().shaped(Shape { jit_markers: true, ..Shape::default() });
            converter.push(event(2, EventKind::Map(dump.mapping(Pid(own)))));
            dump.load(5, 0x7000_0000, 16, 1, "JS:~first /x.js:1:2");
            converter.advance(Timestamp(6));
            dump.load(9, 0x7000_0100, 16, 2, "second");
            let profile = converter.finish().profile;
            let markers = profile.threads().iter().flat_map(|thread| &thread.markers);
            let found = markers.map(|marker| {
                let (MarkerTiming::Instant(time), [MarkerValue::String(name)]) =
                    (marker.timing, &*marker.values)
                else {
                    panic!("{marker:?}")
                };
                assert_eq!(profile.string(marker.name), "JitFunctionAdd");
                (time, profile.string(*name))
            });
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        check(0, &[(5, "JS:~first /x.js:1:2"), (9, "second")]);
        // Times of another clock say nothing.
        check(1, &[]);
    }

    #[test]
    fn functions_that_are_read_before_their_programs_exec_is_converted_are_markers() {
        let own = std::process::id();
        let dump = TestDump::new(0);
        dump.load(5, 0x7000_0000, 16, 1, "first");
        let mut converter = converter().shaped(Shape { jit_markers: true, ..Shape::default() });
        converter.keep_only(Filter::FromExec(Pid(own)));
        let name = EventKind::Name { pid: Pid(own), tid: Tid(own), name: "app".to_owned(), exec: true };
        converter.push(event(2, name));
        converter.push(event(3, EventKind::Map(dump.mapping(Pid(own)))));
        converter.advance(Timestamp(1));
        let profile = converter.finish().profile;
        assert_eq!(profile.threads().iter().map(|thread| thread.markers.len()).sum::<usize>(), 1);
    }

    #[test]
    fn a_perf_map_names_what_no_file_holds() {
        // Not this process: other tests have samples of it at the same time.
        let mut program = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = program.id();
        let path = format!("/tmp/perf-{pid}.map");
        fs::write(&path, "7f0012340000 100 py::work:/srv/app.py\n").unwrap();
        let mut converter = converter();
        for (time, address) in [(1, 0x7f00_1234_0010), (2, 0x7f00_1234_0100), (3, 0x1000)] {
            converter.push(event(time, sample(pid, address)));
        }
        let names = names(converter);
        fs::remove_file(path).unwrap();
        // It ends with its input.
        program.wait().unwrap();
        assert_eq!(names, ["work Python /srv/app.py:0", "0x7f0012340100 User :0", "0x1000 User :0"]);
    }
}
