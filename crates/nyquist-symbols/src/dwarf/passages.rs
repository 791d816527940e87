//! Passing over entries: how long an entry is, in as few bytes as can be. This is looked up for every entry of a unit,
//! and most entries are of no interest, so that the whole search is about as fast as this.

use super::abbreviations::{Abbreviation, Abbreviations, Role, Step};
use super::attribute::Encoding;
use crate::cursor::Cursor;

/// What makes up the length of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// There is no entry: it is the end of the entries beside each other.
    End,
    /// A number of bytes.
    Fixed,
    /// Bytes, a LEB128, bytes.
    Leb,
    /// Bytes, a block with a LEB128 for its length, bytes.
    Block,
    /// What only its steps tell.
    Other,
    /// It is to be looked at.
    Scope,
}

/// How to pass over an entry.
#[derive(Clone, Copy, Debug)]
struct Passage {
    shape: Shape,
    /// 1 where children follow.
    deeper: u8,
    /// The bytes of its attributes up to the part that varies.
    before: u16,
    /// The bytes of its attributes behind that part.
    after: u16,
}

impl Passage {
    const END: Self = Self { shape: Shape::End, deeper: 0, before: 0, after: 0 };
    const OTHER: Self = Self { shape: Shape::Other, ..Self::END };

    fn of(steps: &[Step], has_children: bool) -> Self {
        let (shape, before, after) = match *steps {
            [] => (Shape::Fixed, 0, 0),
            [Step::Bytes(bytes)] => (Shape::Fixed, bytes, 0),
            [Step::Leb] => (Shape::Leb, 0, 0),
            [Step::Leb, Step::Bytes(after)] => (Shape::Leb, 0, after),
            [Step::Bytes(before), Step::Leb] => (Shape::Leb, before, 0),
            [Step::Bytes(before), Step::Leb, Step::Bytes(after)] => (Shape::Leb, before, after),
            [Step::Block(0)] => (Shape::Block, 0, 0),
            [Step::Block(0), Step::Bytes(after)] => (Shape::Block, 0, after),
            [Step::Bytes(before), Step::Block(0)] => (Shape::Block, before, 0),
            [Step::Bytes(before), Step::Block(0), Step::Bytes(after)] => (Shape::Block, before, after),
            _ => return Self::OTHER,
        };
        match (before.try_into(), after.try_into()) {
            (Ok(before), Ok(after)) => Self { shape, deeper: u8::from(has_children), before, after },
            _ => Self::OTHER,
        }
    }
}

/// How to pass over the entries of a unit, by their abbreviation code.
#[derive(Debug)]
pub(crate) struct Passages {
    /// Stops at functions and inlined calls.
    at_calls: Vec<Passage>,
    /// Stops at functions alone.
    at_functions: Vec<Passage>,
}

impl Default for Passages {
    fn default() -> Self {
        Self { at_calls: vec![Passage::END], at_functions: vec![Passage::END] }
    }
}

impl Passages {
    /// Adds the abbreviation with the next code.
    pub(crate) fn push(&mut self, abbreviation: &Abbreviation, steps: &[Step]) {
        let plain = Passage::of(steps, abbreviation.has_children);
        let scope = Passage { shape: Shape::Scope, ..Passage::END };
        self.at_calls.push(if abbreviation.role == Role::Other { plain } else { scope });
        self.at_functions.push(if abbreviation.role == Role::Function { scope } else { plain });
    }
}

/// A position among a unit's entries.
pub(crate) struct Walk<'a> {
    pub(crate) entries: &'a [u8],
    pub(crate) abbreviations: &'a Abbreviations,
    pub(crate) encoding: Encoding,
    /// Where the next entry begins.
    pub(crate) at: usize,
    /// How many entries that one is in.
    pub(crate) depth: usize,
}

/// Why a walk has stopped.
pub(crate) enum Stop<'a> {
    /// The next entry is a function or an inlined call.
    Scope(&'a Abbreviation),
    /// The walk is no longer deeper than it was asked to stay.
    Left,
}

impl<'a> Walk<'a> {
    /// Goes on to the next function, or, if asked for, inlined call, or to where it is no longer deeper than `floor`.
    /// `None` where the entries cannot be read further.
    pub(crate) fn next_stop(&mut self, also_calls: bool, floor: usize) -> Option<Stop<'a>> {
        let passages = &self.abbreviations.passages;
        let passages = if also_calls { &passages.at_calls } else { &passages.at_functions };
        let (mut at, mut depth) = (self.at, self.depth);
        loop {
            let (code, attributes) = self.code(at)?;
            let passage = passages.get(code).unwrap_or(&Passage::OTHER);
            let varying = attributes + usize::from(passage.before);
            let next = match passage.shape {
                Shape::Fixed => Some(varying),
                Shape::Leb => self.short(varying).map(|_| varying + 1),
                Shape::Block => self.short(varying).map(|length| varying + 1 + length),
                Shape::Scope | Shape::Other => None,
                Shape::End => {
                    (at, depth) = (attributes, depth.checked_sub(1)?);
                    if depth <= floor {
                        (self.at, self.depth) = (at, depth);
                        return Some(Stop::Left);
                    }
                    continue;
                }
            };
            if let Some(next) = next {
                at = next + usize::from(passage.after);
                depth += usize::from(passage.deeper);
                continue;
            }
            (self.at, self.depth) = (at, depth);
            let of = self.abbreviation()?;
            if of.role == Role::Function || (of.role == Role::Inlined && also_calls) {
                return Some(Stop::Scope(of));
            }
            self.pass(of)?;
            (at, depth) = (self.at, self.depth);
        }
    }

    /// Goes on to the entry behind the next one, which has the abbreviation `of`.
    pub(crate) fn pass(&mut self, of: &Abbreviation) -> Option<()> {
        let mut cursor = self.cursor()?;
        self.abbreviations.pass(of, &mut cursor, self.encoding)?;
        self.at = cursor.position();
        self.depth += usize::from(of.has_children);
        Some(())
    }

    /// The attributes of the next entry.
    pub(crate) fn cursor(&self) -> Option<Cursor<'a>> {
        let mut cursor = Cursor::new(self.entries, self.at, self.encoding.little_endian);
        cursor.skip_leb()?;
        Some(cursor)
    }

    /// The code of the entry at `at` and where its attributes begin. Of a longer code than compilers use, a number
    /// that no passage has.
    #[inline]
    fn code(&self, at: usize) -> Option<(usize, usize)> {
        let first = usize::from(*self.entries.get(at)?);
        if first < 0x80 {
            return Some((first, at + 1));
        }
        let second = self.short(at + 1);
        Some((second.map_or(usize::MAX, |second| (first & 0x7f) | (second << 7)), at + 2))
    }

    /// The number at `at`, if it is one of a single byte.
    #[inline]
    fn short(&self, at: usize) -> Option<usize> {
        self.entries.get(at).filter(|&&byte| byte < 0x80).map(|&byte| byte.into())
    }

    /// The abbreviation of the next entry.
    fn abbreviation(&self) -> Option<&'a Abbreviation> {
        let code = Cursor::new(self.entries, self.at, self.encoding.little_endian).uleb()?;
        self.abbreviations.get(code)
    }
}
