//! From the entries of call frame information to a table: entries are put in order, overlaps are settled, and
//! rows are merged.

use crate::Damage;
use crate::cfi::{Entries, Fde, FrameSection, Interpreter, SectionKind};
use crate::table::{RuleSet, Table, TableBuilder, UNCOVERED};
use std::ops::Range;

/// A range of a module's code and the FDE that describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The first address, relative to the image base.
    pub(crate) start: u32,
    /// The address after the last byte.
    pub(crate) end: u32,
    /// The entry in [`Compiled::entries`]; while compiling, the number of the description.
    description: u32,
}

/// Where an FDE is, for rows that have to be evaluated in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdeIndex {
    /// The first address for which it is the right one, relative to the image base.
    pub(crate) start: u32,
    /// Its offset in its section, and in the highest bit whether that is `.debug_frame`.
    packed: u32,
}

const DEBUG_FRAME: u32 = 1 << 31;

impl FdeIndex {
    /// The kind of the section, and the offset in it.
    pub(crate) fn place(self) -> (SectionKind, usize) {
        let kind =
            if self.packed & DEBUG_FRAME == 0 { SectionKind::EhFrame } else { SectionKind::DebugFrame };
        (kind, (self.packed & !DEBUG_FRAME) as usize)
    }
}

/// What the FDEs of one module say.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) table: Table,
    /// By address.
    pub(crate) fdes: Vec<FdeIndex>,
    /// The covered ranges by address; none overlap.
    pub(crate) covered: Vec<Range<u32>>,
    pub(crate) damage: Damage,
}

/// The rows of an FDE.
#[derive(Debug)]
struct Description {
    /// Where its rows begin; they end where the next description's begin.
    first_row: u32,
    packed: u32,
}

/// Collects the FDEs of a module's sections.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    image_base: u64,
    /// Relative addresses of the module's code: what lies outside was discarded by the linker or is a lie.
    code: &'a [Range<u32>],
    rows: Vec<(u32, u16)>,
    descriptions: Vec<Description>,
    rules: RuleSet,
    pieces: Vec<Piece>,
    damage: Damage,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(image_base: u64, code: &'a [Range<u32>]) -> Self {
        Self {
            image_base,
            code,
            rows: Vec::new(),
            descriptions: Vec::new(),
            rules: RuleSet::new(),
            pieces: Vec::new(),
            damage: Damage::default(),
        }
    }

    /// Adds a section. Where an earlier one describes code already, that stands.
    pub(crate) fn add(&mut self, section: &FrameSection) {
        let mut interpreter = Interpreter::new(section);
        let mut pieces = Vec::new();
        for entry in Entries::new(section) {
            match entry {
                Ok((fde, cie)) => {
                    let Some(range) = self.range(&fde) else { continue };
                    let first_row = self.rows.len();
                    let (rows, rules, base) = (&mut self.rows, &mut self.rules, self.image_base);
                    let done = interpreter.rows(&fde, &cie, |address, rule| {
                        push_row(rows, first_row, &range, address.wrapping_sub(base), rules.number(rule));
                    });
                    if done.is_none() {
                        self.rows.truncate(first_row);
                        self.damage.add(|| format!("damaged instructions in the FDE at {:#x}", fde.offset));
                        continue;
                    }
                    match self.describe(first_row, section.kind, fde.offset) {
                        Some(description) => {
                            pieces.push(Piece { start: range.start, end: range.end, description });
                        }
                        None => self.rows.truncate(first_row),
                    }
                }
                Err(bad) => self.damage.add(|| format!("{} at {:#x}", bad.reason, bad.offset)),
            }
        }
        let pieces = flatten(pieces);
        self.pieces = fill_gaps(std::mem::take(&mut self.pieces), &pieces);
    }

    fn describe(&mut self, first_row: usize, kind: SectionKind, offset: usize) -> Option<u32> {
        let offset = u32::try_from(offset).ok().filter(|offset| offset & DEBUG_FRAME == 0)?;
        let packed = if kind == SectionKind::DebugFrame { offset | DEBUG_FRAME } else { offset };
        let number = u32::try_from(self.descriptions.len()).ok()?;
        self.descriptions.push(Description { first_row: u32::try_from(first_row).ok()?, packed });
        Some(number)
    }

    /// The part of the FDE's range that is code of the module.
    fn range(&self, fde: &Fde<'_>) -> Option<Range<u32>> {
        let start = u32::try_from(fde.start.checked_sub(self.image_base)?).ok()?;
        let end = u32::try_from(fde.end.checked_sub(self.image_base)?).unwrap_or(u32::MAX);
        let code = self.code.iter().find(|code| code.contains(&start))?;
        let end = end.min(code.end);
        (start < end).then_some(start..end)
    }

    /// Puts everything in order.
    pub(crate) fn finish(self) -> Compiled {
        let Self { rows, descriptions, rules, pieces, damage, .. } = self;
        let code = pieces.first().zip(pieces.last()).map_or(0, |(first, last)| last.end - first.start);
        let mut builder = TableBuilder::new(rows.len() + pieces.len() / 2, code.min(1 << 28) as usize);
        let mut covered: Vec<Range<u32>> = Vec::new();
        let mut fdes = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let Some(description) = descriptions.get(piece.description as usize) else { continue };
            match covered.last_mut() {
                Some(last) if last.end == piece.start => last.end = piece.end,
                last => {
                    if let Some(last) = last {
                        builder.push(last.end, UNCOVERED);
                    }
                    covered.push(piece.start..piece.end);
                }
            }
            let next = descriptions.get(piece.description as usize + 1);
            let end = next.map_or(rows.len(), |next| next.first_row as usize);
            push_piece(
                &mut builder,
                piece,
                rows.get(description.first_row as usize..end).unwrap_or_default(),
            );
            fdes.push(FdeIndex { start: piece.start, packed: description.packed });
        }
        if let Some(last) = covered.last() {
            builder.push(last.end, UNCOVERED);
        }
        Compiled { table: builder.finish(rules), fdes, covered, damage }
    }
}

/// Adds a row of an FDE, unless it says what the row before it says, or is outside of the FDE's range.
fn push_row(rows: &mut Vec<(u32, u16)>, first: usize, range: &Range<u32>, address: u64, rule: u16) {
    let Ok(address) = u32::try_from(address) else { return };
    let last = if rows.len() > first { rows.last().map(|row| row.1) } else { None };
    if range.contains(&address) && last != Some(rule) {
        rows.push((address, rule));
    }
}

/// Hands the rows that hold within the piece to the builder.
fn push_piece(builder: &mut TableBuilder, piece: &Piece, rows: &[(u32, u16)]) {
    // A piece can be the rest of an FDE after another one within it: its first row then began before.
    let first = rows.partition_point(|row| row.0 <= piece.start).saturating_sub(1);
    for &(address, rule) in rows.iter().skip(first).take_while(|row| row.0 < piece.end) {
        builder.push(address.max(piece.start), rule);
    }
}

/// Puts pieces in order and settles overlaps: the piece with the latest start wins, the first one of the
/// file among equals. What it interrupts goes on behind it.
fn flatten(mut pieces: Vec<Piece>) -> Vec<Piece> {
    if pieces.is_sorted_by(|a, b| a.end <= b.start) {
        return pieces;
    }
    pieces.sort_by_key(|piece| (piece.start, std::cmp::Reverse(piece.description)));
    let mut flat: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut interrupted: Vec<Piece> = Vec::new();
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

/// Goes on with interrupted pieces behind the last one, up to `limit`.
fn resume(flat: &mut Vec<Piece>, interrupted: &mut Vec<Piece>, limit: u32) {
    while let Some(outer) = interrupted.last().copied() {
        let end = flat.last().map_or(0, |last| last.end);
        if end >= limit {
            return;
        }
        interrupted.pop();
        if outer.end > end {
            flat.push(Piece { start: end, ..outer });
        }
    }
}

/// The pieces of `first`, and of `second` what they leave open. Both are in order and without overlaps.
fn fill_gaps(first: Vec<Piece>, second: &[Piece]) -> Vec<Piece> {
    if first.is_empty() {
        return second.to_vec();
    }
    let mut all = Vec::with_capacity(first.len() + second.len());
    let mut fillers = second.iter().copied().peekable();
    let mut position = 0;
    let end = Piece { start: u32::MAX, end: u32::MAX, description: 0 };
    for piece in first.into_iter().chain([end]) {
        while let Some(filler) = fillers.peek().copied().filter(|filler| filler.start < piece.start) {
            let start = filler.start.max(position);
            let end = filler.end.min(piece.start);
            if start < end {
                all.push(Piece { start, end, ..filler });
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

    fn pieces(list: &[(u32, u32)]) -> Vec<Piece> {
        let piece = |(number, &(start, end))| Piece { start, end, description: number as u32 };
        list.iter().enumerate().map(piece).collect()
    }

    /// The number of the piece at each address, found by looking at all of them.
    fn at(pieces: &[Piece], address: u32) -> Option<u32> {
        let covers = |piece: &&Piece| piece.start <= address && address < piece.end;
        let latest = pieces.iter().filter(covers);
        latest.max_by_key(|piece| (piece.start, std::cmp::Reverse(piece.description))).map(|p| p.description)
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
    fn a_second_section_fills_gaps_only() {
        let check = |first: &[(u32, u32)], second: &[(u32, u32)]| {
            let (first, second) = (pieces(first), pieces(second));
            let second: Vec<_> =
                second.into_iter().map(|p| Piece { description: p.description + 100, ..p }).collect();
            let all = fill_gaps(first.clone(), &second);
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
