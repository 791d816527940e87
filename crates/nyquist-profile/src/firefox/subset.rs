//! Which rows of a profile's tables are written, and which numbers they get.
//!
//! Version 66 has one set of tables for all threads, version 49 one set a thread; rows that no sample and no
//! marker reaches are left out of both.

use crate::category::CategoryPair;
use crate::code::{Frame, Func, NativeSymbol, Source};
use crate::id::{FrameId, FuncId, LibId, NativeSymbolId, SourceId, StackId, StringId};
use crate::marker::{Marker, MarkerFormat, MarkerValue};
use crate::profile::Profile;
use crate::thread::Thread;

/// Marks a row that has no number.
const UNUSED: u32 = u32::MAX;

/// The rows of one table that are written, in the order of their ids, and the number of each.
#[derive(Default)]
struct Renumbering {
    numbers: Vec<u32>,
    used: Vec<u32>,
}

impl Renumbering {
    fn new(rows: usize) -> Self {
        Self { numbers: vec![UNUSED; rows], used: Vec::new() }
    }

    /// Marks the row as used; false if it was already.
    fn mark(&mut self, row: usize) -> bool {
        let is_new = self.numbers[row] == UNUSED;
        if is_new {
            self.numbers[row] = 0;
            self.used.push(row as u32);
        }
        is_new
    }

    /// Numbers the marked rows.
    fn number(&mut self) {
        // Where most rows are used, a look at all of them is faster than sorting.
        if self.used.len() > self.numbers.len() / 16 {
            self.used.clear();
            let marked = (0..).zip(&self.numbers).filter(|(_, number)| **number != UNUSED);
            self.used.extend(marked.map(|(row, _): (u32, _)| row));
        } else {
            self.used.sort_unstable();
        }
        for (number, &row) in (0..).zip(&self.used) {
            self.numbers[row as usize] = number;
        }
    }

    /// Forgets the marked rows, in time linear in their number.
    fn clear(&mut self) {
        for row in self.used.drain(..) {
            self.numbers[row as usize] = UNUSED;
        }
    }

    fn rows(&self) -> impl ExactSizeIterator<Item = usize> {
        self.used.iter().map(|&row| row as usize)
    }
}

/// The part of a profile's tables that some of its threads need.
pub(super) struct Subset<'a> {
    profile: &'a Profile,
    strings: Renumbering,
    sources: Renumbering,
    libs: Renumbering,
    /// Two rows a function: see [`func_row`].
    funcs: Renumbering,
    native_symbols: Renumbering,
    frames: Renumbering,
    stacks: Renumbering,
}

/// Defines the number of a row, and the rows in the order of their numbers.
macro_rules! numbered {
    ($($number:ident, $rows:ident, $id:ident;)*) => {$(
        pub(super) fn $number(&self, id: $id) -> u32 {
            self.$rows.numbers[id.index()]
        }

        pub(super) fn $rows(&self) -> impl ExactSizeIterator<Item = $id> {
            self.$rows.rows().map($id::from_index)
        }
    )*};
}

impl<'a> Subset<'a> {
    /// An empty part of `profile`.
    pub(super) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            strings: Renumbering::new(profile.strings().len()),
            sources: Renumbering::new(profile.sources().len()),
            libs: Renumbering::new(profile.libs().len()),
            funcs: Renumbering::new(2 * profile.funcs().len()),
            native_symbols: Renumbering::new(profile.native_symbols().len()),
            frames: Renumbering::new(profile.frames().len()),
            stacks: Renumbering::new(profile.stacks().len()),
        }
    }

    numbered! {
        string, strings, StringId;
        source, sources, SourceId;
        resource, libs, LibId;
        native_symbol, native_symbols, NativeSymbolId;
        frame, frames, FrameId;
        stack, stacks, StackId;
    }

    /// The number of a frame's function.
    pub(super) fn func(&self, frame: &Frame) -> u32 {
        self.funcs.numbers[func_row(self.profile, frame)]
    }

    /// The functions in the order of their numbers. Those that have frames with and without a written address
    /// are there twice.
    pub(super) fn funcs(&self) -> impl ExactSizeIterator<Item = FuncId> {
        self.funcs.rows().map(|row| FuncId::from_index(row / 2))
    }

    /// Makes this the part that `threads` need.
    pub(super) fn select<'t>(&mut self, threads: impl IntoIterator<Item = &'t Thread>) {
        self.tables().into_iter().for_each(Renumbering::clear);
        for thread in threads {
            for stack in thread.samples.iter().filter_map(|sample| sample.stack) {
                self.mark_stack(stack);
            }
            for marker in &thread.markers {
                self.mark_marker(marker);
            }
        }
        self.tables().into_iter().for_each(Renumbering::number);
    }

    fn tables(&mut self) -> [&mut Renumbering; 7] {
        [
            &mut self.strings,
            &mut self.sources,
            &mut self.libs,
            &mut self.funcs,
            &mut self.native_symbols,
            &mut self.frames,
            &mut self.stacks,
        ]
    }

    fn mark_stack(&mut self, stack: StackId) {
        let profile = self.profile;
        for stack in profile.ancestors(stack) {
            if !self.stacks.mark(stack.index()) {
                break;
            }
            self.mark_frame(profile.stack(stack).frame);
        }
    }

    fn mark_frame(&mut self, id: FrameId) {
        if !self.frames.mark(id.index()) {
            return;
        }
        let frame = self.profile.frame(id);
        self.mark_func(frame);
        if let Some(source) = frame.source {
            self.mark_source(source);
        }
        if let Some(id) = written_symbol(self.profile, frame) {
            let &NativeSymbol { lib, name, .. } = self.profile.native_symbol(id);
            self.native_symbols.mark(id.index());
            self.libs.mark(lib.index());
            self.strings.mark(name.index());
        }
    }

    fn mark_func(&mut self, frame: &Frame) {
        if !self.funcs.mark(func_row(self.profile, frame)) {
            return;
        }
        let &Func { name, lib, source, .. } = self.profile.func(frame.func);
        self.strings.mark(name.index());
        if let Some(lib) = lib {
            self.libs.mark(lib.index());
        }
        if let Some(source) = source {
            self.mark_source(source);
        }
    }

    fn mark_source(&mut self, source: SourceId) {
        let &Source { filename } = self.profile.source(source);
        self.sources.mark(source.index());
        self.strings.mark(filename.index());
    }

    fn mark_marker(&mut self, marker: &Marker) {
        self.strings.mark(marker.name.index());
        if let Some(stack) = marker.stack {
            self.mark_stack(stack);
        }
        let profile = self.profile;
        let fields = marker.schema.map_or(&[][..], |schema| &profile.marker_schema(schema).fields);
        for (field, value) in fields.iter().zip(&marker.values) {
            if let MarkerValue::String(string) = value
                && is_interned(field.format)
            {
                self.strings.mark(string.index());
            }
        }
    }

    /// The category of each stack of the part, in the order of their numbers: its frame's, else its prefix's,
    /// else `default`.
    pub(super) fn stack_categories(&self, default: CategoryPair) -> Vec<CategoryPair> {
        let mut categories: Vec<CategoryPair> = Vec::with_capacity(self.stacks.used.len());
        for stack in self.stacks() {
            let stack = self.profile.stack(stack);
            let inherited = stack.prefix.and_then(|prefix| categories.get(self.stack(prefix) as usize));
            let inherited = inherited.copied().unwrap_or(default);
            categories.push(self.profile.frame(stack.frame).category.unwrap_or(inherited));
        }
        categories
    }
}

/// Whether a field's strings are written as indexes of the string table.
pub(super) fn is_interned(format: MarkerFormat) -> bool {
    matches!(format, MarkerFormat::UniqueString | MarkerFormat::FlowId | MarkerFormat::TerminatingFlowId)
}

/// The row of a frame's function. Frames that are written with an address and those without have one each, as
/// the format wants it: the front end, when it symbolicates the former, would rename the latter too.
fn func_row(profile: &Profile, frame: &Frame) -> usize {
    2 * frame.func.index() + usize::from(written_address(profile, frame).is_none())
}

/// The address of a frame if it can be written. An address is relative to a lib: without one there is nothing
/// that it could mean to a reader.
pub(super) fn written_address(profile: &Profile, frame: &Frame) -> Option<u32> {
    profile.func(frame.func).lib.and_then(|_| int32(frame.address))
}

/// The native symbol of a frame if its address can be written.
pub(super) fn written_symbol(profile: &Profile, frame: &Frame) -> Option<NativeSymbolId> {
    frame.native_symbol.filter(|&id| int32(Some(profile.native_symbol(id).address)).is_some())
}

/// A number that the front end may keep in an array of 32-bit integers.
pub(super) fn int32(value: Option<u32>) -> Option<u32> {
    value.filter(|&value| i32::try_from(value).is_ok())
}
