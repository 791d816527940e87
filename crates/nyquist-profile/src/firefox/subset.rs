//! Selects the rows of a profile's tables to write, and numbers them.
//!
//! Version 66 has one set of tables for all threads, version 49 one set per thread. Rows that no sample
//! and no marker refers to are left out of both.

use super::FormatVersion;
use super::idle_category::IdleCategory;
use crate::category::CategoryPair;
use crate::code::{Frame, Func, NativeSymbol, Source};
use crate::id::{CategoryId, FrameId, FuncId, LibId, NativeSymbolId, SourceId, StackId, StringId};
use crate::marker::{Marker, MarkerFormat, MarkerValue};
use crate::profile::Profile;
use crate::thread::Thread;

/// The rows of one table to write, in the order of their ids, and the number of each: the number of such rows
/// before it.
///
/// It has a bit per row and a sum per word. Tables have millions of rows, nearly all of which are written.
#[derive(Default)]
struct Renumbering {
    words: Vec<RowWord>,
    used: u32,
}

/// 64 rows.
#[derive(Clone, Copy, Default)]
struct RowWord {
    /// The used rows; the lowest bit is the first one.
    marks: u64,
    /// The number of used rows before them.
    before: u32,
}

impl Renumbering {
    fn new(rows: usize) -> Self {
        Self { words: vec![RowWord::default(); rows.div_ceil(64)], used: 0 }
    }

    /// Marks the row as used; returns false if it was already.
    fn mark(&mut self, row: usize) -> bool {
        let (word, bit) = (&mut self.words[row / 64], 1 << (row % 64));
        let is_new = word.marks & bit == 0;
        word.marks |= bit;
        is_new
    }

    /// Numbers the marked rows.
    fn number_rows(&mut self) {
        self.used = 0;
        for word in &mut self.words {
            word.before = self.used;
            self.used += word.marks.count_ones();
        }
    }

    /// The number of a marked row.
    fn number(&self, row: usize) -> u32 {
        let RowWord { marks, before } = self.words[row / 64];
        before + (marks & ((1 << (row % 64)) - 1)).count_ones()
    }

    /// Forgets the marked rows.
    fn clear(&mut self) {
        self.words.fill(RowWord::default());
    }

    /// The marked rows, with their numbers.
    fn rows(&self) -> CountedRows<'_> {
        CountedRows { marked: self.marked(), left: self.used as usize }
    }

    /// The marked rows, ascending.
    fn marked(&self) -> MarkedRows<'_> {
        MarkedRows { words: &self.words, at: 0, rest: 0 }
    }
}

/// The marked rows of a table, ascending.
struct MarkedRows<'a> {
    words: &'a [RowWord],
    /// The index of the next word.
    at: usize,
    /// The bits of the current word that were not returned yet.
    rest: u64,
}

impl Iterator for MarkedRows<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.rest == 0 {
            self.rest = self.words.get(self.at)?.marks;
            self.at += 1;
        }
        let bit = self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(64 * (self.at - 1) + bit)
    }
}

/// The same, with their count.
struct CountedRows<'a> {
    marked: MarkedRows<'a>,
    left: usize,
}

impl Iterator for CountedRows<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let row = self.marked.next()?;
        self.left -= 1;
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for CountedRows<'_> {}

/// An additional row of a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FuncVariant {
    func: FuncId,
    /// The file of its lines, if it differs from the function's. Only in version 49, where a function has
    /// one file.
    source: Option<SourceId>,
    /// The category of its frames, if it differs from that of the function's first frame. Otherwise the
    /// front end would draw the function grey. So the tiers of a JavaScript function are functions there.
    category: Option<CategoryId>,
    /// Whether its frames are written with an address.
    has_address: bool,
}

/// The part of a profile's tables that some of its threads use.
pub(super) struct Subset<'a> {
    profile: &'a Profile,
    strings: Renumbering,
    sources: Renumbering,
    libs: Renumbering,
    /// Two rows per function, then those of `variants`: see [`Subset::func_row`].
    funcs: Renumbering,
    /// Sorted.
    variants: Vec<FuncVariant>,
    version: FormatVersion,
    native_symbols: Renumbering,
    frames: Renumbering,
    stacks: Renumbering,
    idle: Option<IdleCategory>,
    /// The stacks in which threads waited, and their innermost frames, in order. They come after all others.
    idle_stacks: Vec<StackId>,
    idle_frames: Vec<FrameId>,
}

/// Defines two methods: the number of a row, and the rows in the order of their numbers.
macro_rules! numbered {
    ($($number:ident, $rows:ident, $id:ident;)*) => {$(
        pub(super) fn $number(&self, id: $id) -> u32 {
            self.$rows.number(id.index())
        }

        pub(super) fn $rows(&self) -> impl ExactSizeIterator<Item = $id> {
            self.$rows.rows().map($id::from_index)
        }
    )*};
}

impl<'a> Subset<'a> {
    /// An empty part of `profile`, for a version of the format.
    pub(super) fn new(profile: &'a Profile, version: FormatVersion) -> Self {
        let variants = variants(profile, version);
        Self {
            profile,
            strings: Renumbering::new(profile.strings().len()),
            sources: Renumbering::new(profile.sources().len()),
            libs: Renumbering::new(profile.libs().len()),
            funcs: Renumbering::new(2 * profile.funcs().len() + variants.len()),
            variants,
            version,
            native_symbols: Renumbering::new(profile.native_symbols().len()),
            frames: Renumbering::new(profile.frames().len()),
            stacks: Renumbering::new(profile.stacks().len()),
            idle: IdleCategory::of(profile),
            idle_stacks: Vec::new(),
            idle_frames: Vec::new(),
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
        self.funcs.number(self.func_row(frame))
    }

    /// The functions in the order of their numbers. Functions that have frames with and without a written
    /// address are included twice, and once more for each of their variants. A variant in another file has
    /// that file. It has no line, because its start in that file is not known.
    pub(super) fn funcs(&self) -> impl ExactSizeIterator<Item = Func> {
        self.funcs.rows().map(|row| {
            let own = 2 * self.profile.funcs().len();
            let variant = row.checked_sub(own).and_then(|row| self.variants.get(row));
            let func =
                *self.profile.func(variant.map_or(FuncId::from_index(row / 2), |variant| variant.func));
            match variant.and_then(|variant| variant.source) {
                Some(source) => Func { source: Some(source), line: None, column: None, ..func },
                None => func,
            }
        })
    }

    /// The row of a frame's function. Frames that are written with an address and those without have one
    /// each. Otherwise the front end would rename the latter when it symbolicates the former.
    fn func_row(&self, frame: &Frame) -> usize {
        let own = || 2 * frame.func.index() + usize::from(written_address(self.profile, frame).is_none());
        self.variant(frame).map_or_else(own, |row| 2 * self.profile.funcs().len() + row)
    }

    /// The index of the function's variant that a frame belongs to.
    fn variant(&self, frame: &Frame) -> Option<usize> {
        if self.variants.is_empty() {
            return None;
        }
        let whole = variant_of(self.profile, frame, self.version);
        // All frames of the function may have one category, or this frame has the category of the first.
        let of_one_category = FuncVariant { category: None, ..whole };
        self.variants.binary_search(&whole).or_else(|_| self.variants.binary_search(&of_one_category)).ok()
    }

    /// Selects the part that `threads` use.
    pub(super) fn select<'t>(&mut self, threads: impl IntoIterator<Item = &'t Thread>) {
        self.tables().into_iter().for_each(Renumbering::clear);
        self.idle_stacks.clear();
        for thread in threads {
            for sample in &thread.samples {
                let Some(stack) = sample.stack else { continue };
                if sample.off_cpu && self.has_idle_row(stack) {
                    self.mark_idle_stack(stack);
                } else {
                    self.mark_stack(stack);
                }
            }
            for marker in &thread.markers {
                self.mark_marker(marker);
            }
        }
        // Each table is visited in its own order, because neighbouring rows are close in memory.
        let (profile, stacks) = (self.profile, std::mem::take(&mut self.stacks));
        for stack in stacks.marked() {
            self.frames.mark(profile.stacks()[stack].frame.index());
        }
        self.stacks = stacks;
        let frames = std::mem::take(&mut self.frames);
        for frame in frames.marked() {
            self.mark_uses(&profile.frames()[frame]);
        }
        self.frames = frames;
        self.number_idle_rows();
        let idle_frames = std::mem::take(&mut self.idle_frames);
        for &frame in &idle_frames {
            self.mark_uses(profile.frame(frame));
        }
        self.idle_frames = idle_frames;
        self.tables().into_iter().for_each(Renumbering::number_rows);
    }

    fn number_idle_rows(&mut self) {
        let profile = self.profile;
        self.idle_stacks.sort_unstable();
        self.idle_stacks.dedup();
        self.idle_frames.clear();
        self.idle_frames.extend(self.idle_stacks.iter().map(|stack| profile.stack(*stack).frame));
        self.idle_frames.sort_unstable();
        self.idle_frames.dedup();
    }

    /// Whether a stack can be written as a waiting one.
    fn has_idle_row(&self, stack: StackId) -> bool {
        let frame = self.profile.frame(self.profile.stack(stack).frame);
        self.variant(frame).is_none() && self.idle.is_some_and(|idle| idle.frame(frame).is_some())
    }

    /// Marks a stack in which a thread waited. A row in its own category is written only if the thread
    /// also ran there, because the front end colours a function by all its rows.
    fn mark_idle_stack(&mut self, stack: StackId) {
        if self.idle_stacks.last() == Some(&stack) {
            return;
        }
        self.idle_stacks.push(stack);
        if let Some(prefix) = self.profile.stack(stack).prefix {
            self.mark_stack(prefix);
        }
    }

    /// The number of a stack in which a thread waited.
    pub(super) fn idle_stack(&self, id: StackId) -> u32 {
        let place = self.idle_stacks.binary_search(&id);
        place.map_or_else(|_| self.stack(id), |place| self.stacks.used + place as u32)
    }

    /// The number of stacks, including waiting ones.
    pub(super) fn stack_count(&self) -> usize {
        self.stacks.used as usize + self.idle_stacks.len()
    }

    /// The numbers of each stack's frame and prefix, in the order of the stacks' numbers.
    pub(super) fn stack_rows(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let prefix = |stack: StackId| self.profile.stack(stack).prefix.map(|prefix| self.stack(prefix));
        let frame = |stack: StackId| self.profile.stack(stack).frame;
        let own = self.stacks().map(move |stack| (self.frame(frame(stack)), prefix(stack)));
        let idle = self.idle_stacks.iter().map(move |&stack| {
            let place = self.idle_frames.binary_search(&frame(stack)).unwrap_or(0);
            (self.frames.used + place as u32, prefix(stack))
        });
        own.chain(idle)
    }

    /// The number of frames, including waiting ones.
    pub(super) fn frame_count(&self) -> usize {
        self.frames.used as usize + self.idle_frames.len()
    }

    /// The frames in the order of their numbers.
    pub(super) fn frame_rows(&self) -> impl Iterator<Item = Frame> {
        let own = self.frames().map(|id| *self.profile.frame(id));
        let idle = self.idle_frames.iter();
        own.chain(idle.filter_map(|&id| self.idle?.frame(self.profile.frame(id))))
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
        for stack in self.profile.ancestors(stack) {
            if !self.stacks.mark(stack.index()) {
                break;
            }
        }
    }

    /// Marks the rows that a frame refers to.
    fn mark_uses(&mut self, frame: &Frame) {
        self.mark_func(frame);
        if let Some(source) = frame.source {
            self.mark_source(source);
        }
        if let Some(id) = written_symbol(self.profile, frame)
            && self.native_symbols.mark(id.index())
        {
            let &NativeSymbol { lib, name, .. } = self.profile.native_symbol(id);
            self.libs.mark(lib.index());
            self.strings.mark(name.index());
        }
    }

    fn mark_func(&mut self, frame: &Frame) {
        let row = self.func_row(frame);
        if !self.funcs.mark(row) {
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

    /// The category of each stack of the part, in the order of their numbers: that of its frame, otherwise
    /// that of its prefix, otherwise `default`.
    pub(super) fn stack_categories(&self, default: CategoryPair) -> Vec<CategoryPair> {
        let mut categories: Vec<CategoryPair> = Vec::with_capacity(self.stacks.used as usize);
        for stack in self.stacks() {
            let stack = self.profile.stack(stack);
            let inherited = stack.prefix.and_then(|prefix| categories.get(self.stack(prefix) as usize));
            let inherited = inherited.copied().unwrap_or(default);
            categories.push(self.profile.frame(stack.frame).category.unwrap_or(inherited));
        }
        let idle = self.idle_stacks.iter().filter_map(|&stack| {
            self.idle?.frame(self.profile.frame(self.profile.stack(stack).frame))?.category
        });
        categories.extend(idle);
        categories
    }
}

/// Whether a field's strings are written as indexes into the string table.
pub(super) fn is_interned(format: MarkerFormat) -> bool {
    matches!(format, MarkerFormat::UniqueString | MarkerFormat::FlowId | MarkerFormat::TerminatingFlowId)
}

/// The additional rows of functions, in order. O(frames + functions).
fn variants(profile: &Profile, version: FormatVersion) -> Vec<FuncVariant> {
    let mut first_categories = vec![None; profile.funcs().len()];
    let mut variants = Vec::new();
    for frame in profile.frames() {
        let mut variant = variant_of(profile, frame, version);
        if variant.category.is_some() {
            let first = first_categories[frame.func.index()].get_or_insert(variant.category);
            variant.category = variant.category.filter(|_| *first != variant.category);
        }
        if variant.source.is_some() || variant.category.is_some() {
            variants.push(variant);
        }
    }
    variants.sort_unstable();
    variants.dedup();
    variants
}

/// The variant for a frame, assuming that its file and its category differ from the function's.
fn variant_of(profile: &Profile, frame: &Frame, version: FormatVersion) -> FuncVariant {
    FuncVariant {
        func: frame.func,
        source: frame.source.filter(|_| version == FormatVersion::V49),
        category: frame.category.map(|pair| pair.category),
        has_address: written_address(profile, frame).is_some(),
    }
}

/// The address of a frame if it can be written. Addresses are relative to a lib, so without a lib an
/// address has no meaning for readers.
pub(super) fn written_address(profile: &Profile, frame: &Frame) -> Option<u32> {
    profile.func(frame.func).lib.and_then(|_| int32(frame.address))
}

/// The native symbol of a frame if its address can be written.
pub(super) fn written_symbol(profile: &Profile, frame: &Frame) -> Option<NativeSymbolId> {
    frame.native_symbol.filter(|&id| int32(Some(profile.native_symbol(id).address)).is_some())
}

/// A number that the front end may store in an array of 32-bit integers.
pub(super) fn int32(value: Option<u32>) -> Option<u32> {
    value.filter(|&value| i32::try_from(value).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_rows_are_numbered_in_their_order() {
        let mut numbering = Renumbering::new(200);
        for round in [&[199, 0, 63, 64, 65, 130][..], &[5], &[]] {
            numbering.clear();
            for &row in round {
                assert!(numbering.mark(row));
                assert!(!numbering.mark(row));
            }
            numbering.number_rows();
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(numbering.rows().len(), sorted.len());
            assert_eq!(numbering.rows().collect::<Vec<_>>(), sorted);
            for (number, &row) in (0..).zip(&sorted) {
                assert_eq!(numbering.number(row), number, "{row}");
            }
        }
    }
}
