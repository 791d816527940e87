//! Passing over entries: how long an entry is, in as few bytes as can be. This is looked up for every entry of a unit,
//! and most entries are of no interest, so that the whole search is about as fast as this.

use super::abbreviations::{Abbreviation, Abbreviations, Role, Step};
use super::attribute::Encoding;
use nyquist_object::Cursor;

/// How to pass over an entry.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
struct Passage {
    /// The bytes of the entry with a code of one byte, without the block in it.
    length: u16,
    /// The bytes before the number that varies.
    before: u16,
    /// The bits of that number which say the length of a block.
    mask: u8,
    /// 1 where children follow, -1 where the entries beside each other end.
    deeper: i8,
    /// The bits of the number, and [`ALWAYS`], of which one tells that the entry cannot be passed over in this way.
    /// None where no number varies.
    obstacles: u16,
}

/// Stands above the bits of a number of one byte.
const ALWAYS: u16 = 0x100;

/// That a number goes on in another byte.
const GOES_ON: u16 = 0x80;

impl Passage {
    /// The entry is to be looked at, or only its steps tell its length.
    const STOP: Self = Self { length: 0, before: 0, mask: 0, obstacles: ALWAYS, deeper: 0 };

    /// What follows the last of the entries beside each other.
    const END: Self = Self { length: 1, obstacles: 0, deeper: -1, ..Self::STOP };

    /// A number that varies, a LEB128, is a value, or the length of a block behind it.
    fn of(steps: &[Step], has_children: bool) -> Self {
        let (obstacles, before, mask, after) = match *steps {
            [] => (0, 0, 0, 0),
            [Step::Bytes(bytes)] => (0, bytes, 0, 0),
            [Step::Leb] => (GOES_ON, 0, 0, 1),
            [Step::Leb, Step::Bytes(after)] => (GOES_ON, 0, 0, 1 + after),
            [Step::Bytes(before), Step::Leb] => (GOES_ON, before, 0, 1),
            [Step::Bytes(before), Step::Leb, Step::Bytes(after)] => (GOES_ON, before, 0, 1 + after),
            [Step::Block(0)] => (GOES_ON, 0, 0x7f, 1),
            [Step::Block(0), Step::Bytes(after)] => (GOES_ON, 0, 0x7f, 1 + after),
            [Step::Bytes(before), Step::Block(0)] => (GOES_ON, before, 0x7f, 1),
            [Step::Bytes(before), Step::Block(0), Step::Bytes(after)] => (GOES_ON, before, 0x7f, 1 + after),
            _ => return Self::STOP,
        };
        let deeper = has_children.into();
        match ((1 + before + after).try_into(), (1 + before).try_into()) {
            (Ok(length), Ok(before)) => Self { length, before, mask, deeper, obstacles },
            _ => Self::STOP,
        }
    }
}

/// The number of codes that take one byte. A table has at least as many passages, so that nothing need be asked of it
/// to find that of such a code.
const SHORT_CODES: usize = 0x80;

/// How to pass over the entries of a unit, by their abbreviation code.
#[derive(Debug)]
pub(crate) struct DieSkipTable {
    /// Stops at functions and inlined calls.
    at_calls: Vec<Passage>,
    /// Stops at functions that have code alone. Others hold no address, and nothing that is inlined into them is looked
    /// for then anyway.
    at_functions: Vec<Passage>,
}

impl Default for DieSkipTable {
    fn default() -> Self {
        Self { at_calls: vec![Passage::END], at_functions: vec![Passage::END] }
    }
}

impl DieSkipTable {
    /// Adds the abbreviation with the next code.
    pub(crate) fn push(&mut self, abbreviation: &Abbreviation, steps: &[Step]) {
        let plain = Passage::of(steps, abbreviation.has_children);
        let Abbreviation { role, has_code, .. } = *abbreviation;
        self.at_calls.push(if role == Role::Other { plain } else { Passage::STOP });
        let is_function = role == Role::Function && has_code;
        self.at_functions.push(if is_function { Passage::STOP } else { plain });
    }

    /// To be called when all are there: without it no entry can be passed over.
    pub(crate) fn finish(&mut self) {
        for passages in [&mut self.at_calls, &mut self.at_functions] {
            passages.resize(passages.len().max(SHORT_CODES), Passage::STOP);
        }
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
        loop {
            if self.hurry(passages, floor)? {
                return Some(Stop::Left);
            }
            let of = self.abbreviation()?;
            if of.role == Role::Function || (of.role == Role::Inlined && also_calls) {
                return Some(Stop::Scope(of));
            }
            self.pass(of)?;
        }
    }

    /// Passes over all entries that `passages` say how to. Whether it has come to where it is no longer deeper than
    /// `floor`.
    fn hurry(&mut self, passages: &[Passage], floor: usize) -> Option<bool> {
        let entries = self.entries;
        let short = passages.first_chunk::<SHORT_CODES>()?;
        let (mut at, mut depth, floor) = (self.at, self.depth as isize, floor as isize);
        loop {
            let first = *entries.get(at)?;
            let (passage, start) = match short.get(usize::from(first)) {
                Some(passage) => (passage, at),
                None => (long(passages, first, *entries.get(at + 1)?), at + 1),
            };
            let mut next = start + usize::from(passage.length);
            if passage.obstacles != 0 {
                let varying = entries.get(start + usize::from(passage.before)).copied().unwrap_or(u8::MAX);
                if (u16::from(varying) | ALWAYS) & passage.obstacles != 0 {
                    (self.at, self.depth) = (at, depth as usize);
                    return Some(false);
                }
                next += usize::from(varying & passage.mask);
            }
            at = next;
            depth += isize::from(passage.deeper);
            if depth <= floor {
                (self.at, self.depth) = (at, usize::try_from(depth).ok()?);
                return Some(true);
            }
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

    /// The abbreviation of the next entry.
    fn abbreviation(&self) -> Option<&'a Abbreviation> {
        let code = Cursor::new(self.entries, self.at, self.encoding.little_endian).uleb()?;
        self.abbreviations.get(code)
    }
}

/// The passage of a code of two bytes. There is none of a code that is longer, or that has no need of two.
#[inline]
fn long(passages: &[Passage], first: u8, second: u8) -> &Passage {
    let code = usize::from(first & 0x7f) | usize::from(second) << 7;
    let is_canonical = (1..0x80).contains(&second);
    passages.get(code).filter(|_| is_canonical).unwrap_or(&Passage::STOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCODING: Encoding = Encoding { version: 4, address_size: 8, offset_size: 4, little_endian: true };

    /// Tags and forms (DWARF 5, 7.5.3 and 7.5.6).
    const SUBPROGRAM: u8 = 0x2e;
    const INLINED: u8 = 0x1d;
    const VARIABLE: u8 = 0x34;
    const DATA1: u8 = 0x0b;
    const DATA4: u8 = 0x06;
    const UDATA: u8 = 0x0f;
    const STRING: u8 = 0x08;
    const EXPRLOC: u8 = 0x18;

    /// Names of attributes.
    const LOW_PC: u8 = 0x11;
    const DECL_FILE: u8 = 0x3a;

    /// Abbreviations of these codes, tags and forms, and whether their entries have children. All functions say where
    /// their code is.
    fn abbreviations(declared: &[(u64, u8, bool, &[u8])]) -> Abbreviations {
        let mut bytes = Vec::new();
        for (code, tag, has_children, forms) in declared {
            bytes.extend(leb(*code));
            bytes.extend([*tag, u8::from(*has_children)]);
            let name = if *tag == SUBPROGRAM { LOW_PC } else { DECL_FILE };
            bytes.extend(forms.iter().flat_map(|form| [name, *form]));
            bytes.extend([0, 0]);
        }
        bytes.push(0);
        Abbreviations::parse(&mut Cursor::new(&bytes, 0, true), ENCODING).unwrap()
    }

    fn leb(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// Where a walk stops, each place with its depth, and passes over what it stops at.
    fn stops(abbreviations: &Abbreviations, entries: &[u8], also_calls: bool) -> Vec<(usize, usize)> {
        let mut walk = Walk { entries, abbreviations, encoding: ENCODING, at: 0, depth: 0 };
        let mut stops = Vec::new();
        while let Some(stop) = walk.next_stop(also_calls, 0) {
            stops.push((walk.at, walk.depth));
            match stop {
                Stop::Scope(of) => walk.pass(of).unwrap(),
                Stop::Left => return stops,
            }
        }
        stops
    }

    #[test]
    fn functions_are_found_behind_any_entries() {
        let long = vec![0x55; 200];
        for (forms, attributes) in [
            (&[][..], vec![]),
            (&[DATA1, DATA4], vec![9; 5]),
            (&[UDATA], vec![0x7f]),
            (&[UDATA], vec![0xff, 0xff, 0x01]),
            (&[DATA4, UDATA, DATA1], vec![4, 4, 4, 4, 0x80, 0x01, 1]),
            (&[EXPRLOC, DATA4], [vec![3, 0x91, 0x80, 0x7f], vec![4; 4]].concat()),
            (&[DATA1, EXPRLOC], [vec![1], leb(200), long.clone()].concat()),
            (&[STRING, DATA1], b"name\0\x01".to_vec()),
            (&[UDATA, UDATA], vec![1, 0x81, 0]),
        ] {
            for code in [2, 3, 300] {
                let unit: (u64, u8, bool, &[u8]) = (1, 0x11, true, &[]);
                let others = (2..=code).map(|code| (code, VARIABLE, false, forms));
                let scopes: [(u64, u8, bool, &[u8]); 2] =
                    [(code + 1, SUBPROGRAM, true, &[DATA1]), (code + 2, INLINED, false, &[DATA4])];
                let all: Vec<_> = [unit].into_iter().chain(others).chain(scopes).collect();
                let other = [leb(code), attributes.clone()].concat();
                let head = [vec![1], other.clone(), other.clone()].concat();
                let function = [leb(code + 1), vec![7], other.clone()].concat();
                let call = [leb(code + 2), vec![8; 4], other].concat();
                let entries = [&head[..], &function, &call, &[0, 0]].concat();
                let at_function = (head.len(), 1);
                let at_call = (head.len() + function.len(), 2);
                let end = (entries.len(), 0);
                let all = abbreviations(&all);
                assert_eq!(stops(&all, &entries, true), [at_function, at_call, end], "{forms:?} {code}");
                assert_eq!(stops(&all, &entries, false), [at_function, end], "{forms:?} {code}");
            }
        }
    }

    #[test]
    fn codes_that_no_compiler_numbers_so_are_read() {
        let all = abbreviations(&[
            (1, 0x11, true, &[]),
            (5000, VARIABLE, false, &[DATA1]),
            (90_000, SUBPROGRAM, false, &[]),
        ]);
        let entries = [vec![1], leb(5000), vec![1], leb(90_000), vec![0]].concat();
        assert_eq!(stops(&all, &entries, true), [(4, 1), (entries.len(), 0)]);
    }

    #[test]
    fn codeless_functions_are_skipped_without_calls() {
        let all = abbreviations(&[
            (1, 0x11, true, &[]),
            (2, SUBPROGRAM, true, &[]),
            (3, INLINED, false, &[DATA1]),
            (4, SUBPROGRAM, false, &[DATA1]),
        ]);
        let entries = [1, 2, 3, 9, 4, 9, 0, 0];
        assert_eq!(stops(&all, &entries, true), [(1, 1), (2, 2), (4, 2), (8, 0)]);
        assert_eq!(stops(&all, &entries, false), [(4, 2), (8, 0)]);
    }

    #[test]
    fn what_is_cut_or_unknown_ends_the_walk() {
        let all = abbreviations(&[(1, 0x11, true, &[]), (2, VARIABLE, false, &[DATA4, EXPRLOC])]);
        let entries = [1, 2, 4, 4, 4, 4, 3, 0, 0, 0, 0];
        assert_eq!(stops(&all, &entries, true), [(entries.len(), 0)]);
        for len in 0..entries.len() {
            assert_eq!(stops(&all, &entries[..len], true), [], "{len}");
        }
        assert_eq!(stops(&all, &[1, 9, 0], true), []);
        assert_eq!(stops(&all, &[0, 1, 0], true), []);
    }
}
