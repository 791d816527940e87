//! The tables of a written pprof profile: strings, functions, locations and mappings. Each row occurs once.

use std::hash::Hash;

use nyquist_profile::{FrameId, FuncId, Lib, Profile, SourceId, StackId};
use rustc_hash::FxHashMap;

use super::message;
use crate::layout::AddressLayout;
use crate::{SourcePaths, source_path};

/// Assigns ids from 1 on, and equal keys get the same id.
struct RowIds<Key>(FxHashMap<Key, u64>);

impl<Key: Eq + Hash> RowIds<Key> {
    /// The number of `key`, and whether it is new.
    fn number(&mut self, key: Key) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// The next location of a stack after one of its nodes.
#[derive(Clone, Copy)]
struct StackStep {
    location: u64,
    /// The node of the next outer location, after all nodes that are inlined at this address.
    next: Option<StackId>,
}

/// The rows so far, and the part of them that is still to be written.
pub(crate) struct Tables<'a> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    layout: AddressLayout,
    /// The next part to be written. The parts of a message may come in any order and number.
    pub(crate) message: message::Profile,
    /// The steps that are known, by node.
    steps: Vec<Option<StackStep>>,
    strings: FxHashMap<String, i64>,
    locations: RowIds<Vec<FrameId>>,
    functions: RowIds<(FuncId, Option<SourceId>)>,
}

impl<'a> Tables<'a> {
    /// Tables with only the empty string.
    pub(crate) fn new(profile: &'a Profile, paths: SourcePaths<'a>) -> Self {
        let mut tables = Self {
            profile,
            paths,
            layout: AddressLayout::new(profile),
            message: message::Profile::default(),
            steps: vec![None; profile.stacks().len()],
            strings: FxHashMap::default(),
            locations: RowIds(FxHashMap::default()),
            functions: RowIds(FxHashMap::default()),
        };
        tables.string("");
        tables
    }

    /// The number of a string.
    pub(crate) fn string(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.strings.get(text) {
            return number;
        }
        let number = self.strings.len() as i64;
        self.strings.insert(text.to_owned(), number);
        self.message.string_table.push(text.as_bytes().to_vec());
        number
    }

    /// A mapping's id is its lib's index + 1, and the first one is the main program's, as in pprof. All
    /// mappings state that they have functions, even if they do not. Otherwise pprof would treat made-up
    /// addresses as real ones, and look for names itself.
    pub(crate) fn write_mappings(&mut self) {
        let main = main_lib(self.profile);
        let mut libs: Vec<_> = self.profile.libs().iter().enumerate().collect();
        libs.sort_by_key(|&(index, _)| Some(index) != main);
        for (index, lib) in libs {
            let range = self.layout.range(nyquist_profile::LibId::from_index(index));
            let path = if lib.path.is_empty() { &lib.name } else { &lib.path };
            let filename = self.string(path);
            let build_id = self.string(lib.code_id.as_deref().unwrap_or(""));
            self.message.mapping.push(message::Mapping {
                id: index as u64 + 1,
                memory_start: range.start,
                memory_limit: range.end,
                file_offset: 0,
                filename,
                build_id,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
    }

    /// The locations of a stack from the innermost to the outermost, each with the functions inlined at its
    /// address.
    pub(crate) fn push_locations(&mut self, stack: Option<StackId>, locations: &mut Vec<u64>) {
        let mut next = stack;
        while let Some(node) = next {
            let step = self.step(node);
            locations.push(step.location);
            next = step.next;
        }
    }

    fn step(&mut self, node: StackId) -> StackStep {
        if let Some(step) = self.steps[node.index()] {
            return step;
        }
        let profile = self.profile;
        let mut frames = vec![profile.stack(node).frame];
        let mut inner = profile.stack(node).frame;
        let mut next = profile.stack(node).prefix;
        while let Some(outer) = next
            && is_inlined_into(profile, inner, profile.stack(outer).frame)
        {
            inner = profile.stack(outer).frame;
            frames.push(inner);
            next = profile.stack(outer).prefix;
        }
        let step = StackStep { location: self.location(frames), next };
        self.steps[node.index()] = Some(step);
        step
    }

    fn location(&mut self, frames: Vec<FrameId>) -> u64 {
        let lines: Vec<_> = frames.iter().map(|&frame| self.line(frame)).collect();
        let innermost = frames.first().map(|&frame| self.profile.frame(frame));
        let lib = innermost.and_then(|frame| self.profile.func(frame.func).lib);
        let address = innermost.and_then(|frame| self.layout.address(self.profile, frame)).unwrap_or(0);
        let (id, is_new) = self.locations.number(frames);
        if is_new {
            let mapping_id = lib.map_or(0, |lib| lib.index() as u64 + 1);
            self.message.location.push(message::Location { id, mapping_id, address, line: lines });
        }
        id
    }

    fn line(&mut self, frame: FrameId) -> message::Line {
        let frame = self.profile.frame(frame);
        message::Line {
            function_id: self.function(frame.func, frame.source),
            number: frame.line.unwrap_or(0).into(),
            column: frame.column.unwrap_or(0).into(),
        }
    }

    /// The number of a function, given the other file that it has a line in. pprof assumes that a line is in
    /// the function's file, so each file has a separate function. Readers merge these functions by name.
    fn function(&mut self, func: FuncId, elsewhere: Option<SourceId>) -> u64 {
        let (id, is_new) = self.functions.number((func, elsewhere));
        if is_new {
            let func = self.profile.func(func);
            let source = elsewhere.or(func.source);
            let source = source.map(|source| source_path(self.profile, source, self.paths));
            let name = self.string(self.profile.string(func.name));
            let filename = self.string(&source.unwrap_or_default());
            // Its start line is in its own file.
            let start_line = func.line.filter(|_| elsewhere.is_none()).unwrap_or(0).into();
            self.message.function.push(message::Function {
                id,
                name,
                system_name: name,
                filename,
                start_line,
            });
        }
        id
    }

    /// The frames of each location, by its number, the innermost first.
    pub(crate) fn locations(&self) -> impl Iterator<Item = (u64, &[FrameId])> {
        self.locations.0.iter().map(|(frames, &number)| (number, frames.as_slice()))
    }
}

/// The lib of the main program: the one with the name of the process with the most samples. The kernel
/// truncates names after 15 bytes.
fn main_lib(profile: &Profile) -> Option<usize> {
    const KERNELS_NAME: usize = 15;
    let busiest = profile.threads().iter().max_by_key(|thread| thread.samples.len())?;
    let name = profile.process(busiest.process).name.as_str();
    let is_program = |lib: &Lib| lib.name == name || name.len() >= KERNELS_NAME && lib.name.starts_with(name);
    profile.libs().iter().position(is_program)
}

/// Whether the function of a frame is inlined, at the same address, into that of the next outer frame.
fn is_inlined_into(profile: &Profile, inner: FrameId, outer: FrameId) -> bool {
    let (inner, outer) = (profile.frame(inner), profile.frame(outer));
    inner.inline_depth > 0
        && outer.inline_depth == inner.inline_depth - 1
        && inner.address == outer.address
        && profile.func(inner.func).lib == profile.func(outer.func).lib
}
