//! Compiles the entries of call frame information to a table: sorts entries, resolves overlaps, and merges
//! rows.

use crate::Damage;
use crate::architecture::Architecture;
use crate::cfi::{Fde, FdeEntries, FrameSection, Interpreter, RowReceiver, SectionKind};
use crate::code::AllCode;
use crate::rule::Rule;
use crate::rule_table::{RuleTable, TableBuilder};
use std::ops::Range;

/// A range of a module's code and the FDE that describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodePiece {
    /// The first address, relative to the image base.
    pub(crate) start: u32,
    /// The address after the last byte.
    pub(crate) end: u32,
    fde: FdePlace,
}

impl CodePiece {
    /// The kind of the FDE's section, and the FDE's offset in it. `None` if no FDE describes the code.
    pub(crate) fn place(self) -> Option<(SectionKind, usize)> {
        Some((self.fde.kind()?, self.fde.offset()))
    }
}

/// Where a function's description is: the offset of an FDE in its section, or the number of a [`FunctionRange`].
/// The two highest bits distinguish these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FdePlace(u32);

const DEBUG_FRAME: u32 = 1 << 31;
const FUNCTION: u32 = 1 << 30;

impl FdePlace {
    fn new(kind: SectionKind, offset: usize) -> Option<Self> {
        let offset = Self::offset_only(offset)?;
        Some(Self(if kind == SectionKind::DebugFrame { offset | DEBUG_FRAME } else { offset }))
    }

    fn function(number: usize) -> Option<Self> {
        Self::offset_only(number).map(|number| Self(number | FUNCTION))
    }

    fn offset_only(offset: usize) -> Option<u32> {
        u32::try_from(offset).ok().filter(|offset| offset & (DEBUG_FRAME | FUNCTION) == 0)
    }

    /// The section of an FDE. `None` for a function with another description.
    fn kind(self) -> Option<SectionKind> {
        match self.0 & (DEBUG_FRAME | FUNCTION) {
            0 => Some(SectionKind::EhFrame),
            DEBUG_FRAME => Some(SectionKind::DebugFrame),
            _ => None,
        }
    }

    fn offset(self) -> usize {
        (self.0 & !(DEBUG_FRAME | FUNCTION)) as usize
    }
}

/// A function with another description than call frame information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionRange {
    /// Its code, relative to the image base. Not empty.
    pub(crate) range: Range<u32>,
    pub(crate) description: FunctionDescription,
}

/// The description of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FunctionDescription {
    /// A compact unwind encoding.
    Compact(u32),
    /// The offset in the function at which each of its rules begins to hold, in ascending order.
    Rows(Vec<(u32, Rule)>),
}

/// The compiled FDEs of one module.
#[derive(Debug)]
pub(crate) struct CompiledFdes {
    pub(crate) table: RuleTable,
    /// By address; none overlap.
    pub(crate) pieces: Vec<CodePiece>,
}

/// Compiles the FDEs of a module.
#[derive(Debug)]
pub(crate) struct FdeCompiler<'a> {
    pub(crate) image_base: u64,
    /// Relative addresses of the module's code. Descriptions outside of it are of code that the linker
    /// discarded, or are wrong.
    pub(crate) code: &'a [Range<u32>],
    pub(crate) damage: &'a mut Damage,
}

impl FdeCompiler<'_> {
    /// Compiles all sections and functions. Prologues and epilogues of functions with compact encodings are
    /// read from `code`.
    pub(crate) fn compile<A: Architecture>(
        &mut self,
        sections: &[FrameSection],
        functions: &[FunctionRange],
        code: &AllCode,
    ) -> CompiledFdes {
        let pieces = self.all_pieces::<A>(sections, functions);
        CompiledFdes { table: self.table::<A>(&pieces, sections, (functions, code)), pieces }
    }

    /// All pieces, by address. If two sections describe the same code, the earlier one is used. No section is
    /// used for code that `functions` describe. `functions` are in order, and none overlap.
    pub(crate) fn all_pieces<A: Architecture>(
        &mut self,
        sections: &[FrameSection],
        functions: &[FunctionRange],
    ) -> Vec<CodePiece> {
        let mut pieces = function_pieces::<A>(functions);
        for section in sections {
            pieces = fill_gaps(pieces, self.section_pieces(section));
        }
        pieces
    }

    /// The pieces that the entries of a section describe, by address.
    pub(crate) fn section_pieces(&mut self, section: &FrameSection) -> Vec<CodePiece> {
        flatten(self.pieces(section))
    }

    /// The pieces that the entries at some offsets of a section describe, by address. `None` if an entry
    /// describes no code, or if two entries describe the same code.
    pub(crate) fn pieces_at(&mut self, section: &FrameSection, offsets: &[usize]) -> Option<Vec<CodePiece>> {
        let (mut entries, mut pieces) = (FdeEntries::new(section), Vec::with_capacity(offsets.len()));
        for &offset in offsets {
            match entries.at(offset) {
                Some((fde, _)) if fde.start == fde.end => return None,
                Some((fde, _)) => pieces.extend(self.piece(section, &fde)),
                None => self.damage.add(|| format!("no entry at {offset:#x}, where the header names one")),
            }
        }
        sort_by_start(&mut pieces);
        pieces.is_sorted_by(|a, b| a.end <= b.start).then_some(pieces)
    }

    /// The table of consecutive pieces.
    pub(crate) fn table<A: Architecture>(
        &mut self,
        pieces: &[CodePiece],
        sections: &[FrameSection],
        (functions, code): (&[FunctionRange], &AllCode),
    ) -> RuleTable {
        /// The estimated number of rows of a function, which is more than real functions have.
        const ROWS: usize = 12;
        let extent = pieces.first().zip(pieces.last()).map_or(0, |(first, last)| last.end - first.start);
        let mut builder = TableBuilder::new(pieces.len() * ROWS, extent.min(1 << 28) as usize);
        let mut interpreters: Vec<_> = sections
            .iter()
            .map(|section| (FdeEntries::new(section), Interpreter::<A>::new(section)))
            .collect();
        for piece in pieces {
            let Some(kind) = piece.fde.kind() else {
                if let Some(function) = functions.get(piece.fde.offset()) {
                    builder.begin(piece.start);
                    function_rows::<A>(piece, function, code, &mut builder);
                    builder.end(piece.end);
                }
                continue;
            };
            let number = sections.iter().position(|section| section.kind == kind);
            if let Some((entries, interpreter)) = number.and_then(|number| interpreters.get_mut(number)) {
                builder.begin(piece.start);
                self.rows(piece, entries, interpreter, &mut builder);
                builder.end(piece.end);
            }
        }
        builder.finish()
    }

    /// The code that each FDE of a section describes, in the order of the file.
    fn pieces(&mut self, section: &FrameSection) -> Vec<CodePiece> {
        let mut pieces = Vec::new();
        for entry in FdeEntries::new(section) {
            match entry {
                Ok(fde) => pieces.extend(self.piece(section, &fde)),
                Err(bad) => self.damage.add(|| format!("{} at {:#x}", bad.reason, bad.offset)),
            }
        }
        pieces
    }

    /// The code of the module that an FDE describes.
    fn piece(&self, section: &FrameSection, fde: &Fde<'_>) -> Option<CodePiece> {
        let (range, fde) = self.range(fde).zip(FdePlace::new(section.kind, fde.offset))?;
        Some(CodePiece { start: range.start, end: range.end, fde })
    }

    /// The part of the FDE's range that is code of the module.
    fn range(&self, fde: &Fde<'_>) -> Option<Range<u32>> {
        let start = u32::try_from(fde.start.checked_sub(self.image_base)?).ok()?;
        let end = u32::try_from(fde.end.checked_sub(self.image_base)?).unwrap_or(u32::MAX);
        let code = self.code.iter().find(|code| code.contains(&start))?;
        let end = end.min(code.end);
        (start < end).then_some(start..end)
    }

    /// Adds the rows that hold within the piece. Code with damaged instructions is treated as uncovered.
    fn rows<'s, A: Architecture>(
        &mut self,
        piece: &CodePiece,
        entries: &mut FdeEntries<'s>,
        interpreter: &mut Interpreter<'s, A>,
        builder: &mut TableBuilder,
    ) {
        let (base, len) = (self.image_base, u64::from(piece.end - piece.start));
        let mut rows = PieceRows { piece, base, start: base.wrapping_add(piece.start.into()), len, builder };
        let uncovered = match entries.at(piece.fde.offset()) {
            Some((fde, cie)) => interpreter.rows(&fde, cie, &mut rows).err(),
            None => return rows.row(self.image_base, Rule::UNCOVERED),
        };
        if let Some(address) = uncovered {
            rows.row(address, Rule::UNCOVERED);
            self.damage.add(|| format!("damaged instructions in the FDE at {:#x}", piece.fde.offset()));
        }
    }
}

/// Adds the rows of an FDE to the table.
struct PieceRows<'a> {
    piece: &'a CodePiece,
    base: u64,
    /// Where the piece begins, as stated in the file, and how many bytes it has.
    start: u64,
    len: u64,
    builder: &'a mut TableBuilder,
}

impl PieceRows<'_> {
    /// The relative address at which a row begins. `None` if it is after the piece.
    ///
    /// The piece can be the rest of an FDE after another FDE within it. All rows before the piece are moved
    /// to its start, where the last one is used.
    fn address(&self, address: u64) -> Option<u32> {
        let address = address.wrapping_sub(self.base).max(self.piece.start.into());
        (address < self.piece.end.into()).then_some(address as u32)
    }
}

impl RowReceiver for PieceRows<'_> {
    #[inline]
    fn row(&mut self, address: u64, rule: Rule) {
        if let Some(address) = self.address(address) {
            self.builder.row(address, rule);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call a row is a tenth of the cost of a table")]
    fn try_row(&mut self, address: u64, rule: Rule) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset < self.len && self.builder.try_row(self.piece.start + offset as u32, rule)
    }
}

/// The pieces of functions, which are in order and without overlaps. If a function refers to an FDE, its
/// piece has that FDE.
fn function_pieces<A: Architecture>(functions: &[FunctionRange]) -> Vec<CodePiece> {
    const MODE: u32 = 0x0f00_0000;
    let piece = |(number, function): (usize, &FunctionRange)| {
        let fde = match function.description {
            FunctionDescription::Compact(encoding) if encoding & MODE == A::COMPACT_DWARF => {
                // If an FDE's offset is too large for the encoding, it is written as zero, where the section
                // has a CIE. Such an FDE is found by its address.
                let offset = (encoding & 0x00ff_ffff) as usize;
                FdePlace::new(SectionKind::EhFrame, offset).filter(|_| offset > 0)
            }
            _ => FdePlace::function(number),
        };
        Some(CodePiece { start: function.range.start, end: function.range.end, fde: fde? })
    };
    functions.iter().enumerate().filter_map(piece).collect()
}

/// Adds the rows of a function that no FDE describes.
fn function_rows<A: Architecture>(
    piece: &CodePiece,
    function: &FunctionRange,
    code: &AllCode,
    builder: &mut TableBuilder,
) {
    let mut add = |offset: u32, rule| {
        let address = function.range.start.saturating_add(offset);
        if address < piece.end {
            builder.row(address.max(piece.start), rule);
        }
    };
    match &function.description {
        FunctionDescription::Compact(encoding) => {
            A::compact_rows(*encoding, code.of(&function.range).unwrap_or_default(), &mut add);
        }
        FunctionDescription::Rows(rows) => rows.iter().for_each(|&(offset, rule)| add(offset, rule)),
    }
}

/// The ranges that pieces cover, with adjacent ranges merged.
pub(crate) fn merge(pieces: &[CodePiece]) -> Vec<Range<u32>> {
    let mut covered: Vec<Range<u32>> = Vec::new();
    for piece in pieces {
        match covered.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => covered.push(piece.start..piece.end),
        }
    }
    covered
}

/// Sorts pieces and resolves overlaps. The piece with the latest start wins, and of equal starts the first
/// one in the file. A piece that it interrupts continues after it.
fn flatten(mut pieces: Vec<CodePiece>) -> Vec<CodePiece> {
    if pieces.is_sorted_by(|a, b| a.end <= b.start) {
        return pieces;
    }
    sort_by_start(&mut pieces);
    if pieces.is_sorted_by(|a, b| a.end <= b.start) {
        return pieces;
    }
    let mut flat: Vec<CodePiece> = Vec::with_capacity(pieces.len());
    let mut interrupted: Vec<CodePiece> = Vec::new();
    for piece in pieces {
        resume(&mut flat, &mut interrupted, piece.start);
        if let Some(last) = flat.last_mut().filter(|last| last.end > piece.start) {
            if last.end > piece.end {
                interrupted.push(*last);
            }
            last.end = piece.start;
            if last.start == last.end {
                flat.pop();
            }
        }
        flat.push(piece);
    }
    resume(&mut flat, &mut interrupted, u32::MAX);
    flat
}

/// Sorts pieces, which are in the order of the file, by their start. Pieces with the same start get the
/// reverse order of the file. Many pieces are sorted by a radix sort, because addresses are short.
fn sort_by_start(pieces: &mut Vec<CodePiece>) {
    const BITS: u32 = 11;
    pieces.reverse();
    if pieces.len() < 1 << BITS {
        pieces.sort_by_key(|piece| piece.start);
        return;
    }
    let mut sorted = pieces.clone();
    for shift in (0..u32::BITS).step_by(BITS as usize) {
        let digit = |piece: &CodePiece| (piece.start >> shift) as usize % (1 << BITS);
        let mut next = [0_usize; 1 << BITS];
        for piece in &*pieces {
            next[digit(piece)] += 1;
        }
        let mut end = 0;
        for count in &mut next {
            (end, *count) = (end + *count, end);
        }
        for piece in &*pieces {
            let place = &mut next[digit(piece)];
            sorted[*place] = *piece;
            *place += 1;
        }
        std::mem::swap(pieces, &mut sorted);
    }
}

/// Continues interrupted pieces after the last one, up to `limit`.
fn resume(flat: &mut Vec<CodePiece>, interrupted: &mut Vec<CodePiece>, limit: u32) {
    while let Some(outer) = interrupted.last().copied() {
        let end = flat.last().map_or(0, |last| last.end);
        if end >= limit {
            return;
        }
        interrupted.pop();
        if outer.end > end {
            flat.push(CodePiece { start: end, ..outer });
        }
    }
}

/// The pieces of `first`, and the parts of `second` in the gaps between them. Both are in order and without
/// overlaps.
fn fill_gaps(first: Vec<CodePiece>, second: Vec<CodePiece>) -> Vec<CodePiece> {
    if first.is_empty() {
        return second;
    }
    let mut all = Vec::with_capacity(first.len() + second.len());
    let mut fillers = second.into_iter().peekable();
    let mut position = 0;
    let end = CodePiece { start: u32::MAX, end: u32::MAX, fde: FdePlace(0) };
    for piece in first.into_iter().chain([end]) {
        while let Some(filler) = fillers.peek().copied().filter(|filler| filler.start < piece.start) {
            let start = filler.start.max(position);
            let end = filler.end.min(piece.start);
            if start < end {
                all.push(CodePiece { start, end, ..filler });
            }
            if filler.end > piece.end {
                break;
            }
            fillers.next();
        }
        position = piece.end;
        if piece.start < piece.end {
            all.push(piece);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(list: &[(u32, u32)]) -> Vec<CodePiece> {
        let piece = |(number, &(start, end))| CodePiece { start, end, fde: FdePlace(number as u32) };
        list.iter().enumerate().map(piece).collect()
    }

    /// The number of the piece at an address, found by checking all pieces.
    fn at(pieces: &[CodePiece], address: u32) -> Option<u32> {
        let covers = |piece: &&CodePiece| piece.start <= address && address < piece.end;
        let latest = pieces.iter().filter(covers);
        latest.max_by_key(|piece| (piece.start, std::cmp::Reverse(piece.fde))).map(|p| p.fde.0)
    }

    #[test]
    fn the_latest_start_wins_where_pieces_overlap() {
        let check = |list: &[(u32, u32)]| {
            let all = pieces(list);
            let flat = flatten(all.clone());
            assert!(flat.is_sorted_by(|a, b| a.end <= b.start && a.start < a.end), "{flat:?}");
            for address in 0..100 {
                assert_eq!(at(&flat, address), at(&all, address), "{list:?} at {address}");
            }
        };
        check(&[(0, 10), (10, 20)]);
        check(&[(10, 20), (0, 10)]);
        check(&[(0, 50), (10, 20), (30, 40)]);
        check(&[(0, 50), (10, 40), (20, 30), (60, 70)]);
        check(&[(0, 30), (20, 50), (40, 60)]);
        check(&[(0, 10), (0, 20), (0, 5)]);
        check(&[(0, 50), (10, 60), (20, 30), (25, 28), (70, 80), (70, 75)]);
    }

    #[test]
    fn many_pieces_are_put_in_the_order_that_few_are() {
        const COUNT: u32 = 5000;
        // Every seventh piece begins where another one does.
        let start =
            |number: u32| number.wrapping_mul(2_654_435_761) >> 8 & !u32::from(number.is_multiple_of(7));
        let many: Vec<CodePiece> = (0..COUNT)
            .map(|number| CodePiece { start: start(number % 4321), end: u32::MAX, fde: FdePlace(number) })
            .collect();
        let mut sorted = many.clone();
        sort_by_start(&mut sorted);
        let mut expected = many;
        expected.sort_by_key(|piece| (piece.start, std::cmp::Reverse(piece.fde)));
        assert_eq!(sorted, expected);
    }

    #[test]
    fn a_second_section_fills_gaps_only() {
        let check = |first: &[(u32, u32)], second: &[(u32, u32)]| {
            let (first, second) = (pieces(first), pieces(second));
            let second: Vec<_> =
                second.into_iter().map(|p| CodePiece { fde: FdePlace(p.fde.0 + 100), ..p }).collect();
            let all = fill_gaps(first.clone(), second.clone());
            assert!(all.is_sorted_by(|a, b| a.end <= b.start && a.start < a.end), "{all:?}");
            for address in 0..100 {
                assert_eq!(at(&all, address), at(&first, address).or(at(&second, address)), "at {address}");
            }
        };
        check(&[], &[(0, 10)]);
        check(&[(0, 10)], &[]);
        check(&[(10, 20), (30, 40)], &[(0, 100)]);
        check(&[(10, 20), (30, 40)], &[(0, 5), (15, 35), (38, 60)]);
        check(&[(10, 20)], &[(0, 10), (10, 20), (20, 30)]);
        check(&[(10, 20), (20, 30)], &[(12, 28), (28, 31)]);
    }
}
