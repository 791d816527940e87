//! Walks from one requested entry of a unit to the next, and skips the entries between them.

use super::abbreviations::{Abbreviation, Abbreviations};
use super::die_skip_table::{SkipRule, skip};
use super::form::Encoding;
use super::role::Role;
use nyquist_object::Cursor;

/// A position among a unit's entries.
pub(crate) struct DieWalk<'a> {
    pub(crate) entries: &'a [u8],
    pub(crate) abbreviations: &'a Abbreviations,
    pub(crate) encoding: Encoding,
    /// Where the next entry begins.
    pub(crate) at: usize,
    /// The depth of that entry.
    pub(crate) depth: usize,
}

/// Why a walk has stopped.
pub(crate) enum DieStop<'a> {
    /// The next entry is a requested one.
    Scope(&'a Abbreviation),
    /// The walk is no longer deeper than the given floor.
    Left,
}

impl<'a> DieWalk<'a> {
    /// Advances to the next function or, if `also_calls`, inlined call, or until it is no longer deeper than
    /// `floor`. `None` if the entries cannot be read further.
    pub(crate) fn next_stop(&mut self, also_calls: bool, floor: usize) -> Option<DieStop<'a>> {
        let rules = self.abbreviations.skip_table.for_functions(also_calls);
        loop {
            if self.skip_by(rules, floor)? {
                return Some(DieStop::Left);
            }
            let of = self.abbreviation()?;
            if of.role == Role::Function || (of.role == Role::Inlined && also_calls) {
                return Some(DieStop::Scope(of));
            }
            self.skip_entry(of)?;
        }
    }

    /// Advances to the next entry that qualifies names, or until the walk is no longer deeper than `floor`.
    /// `None` if the entries cannot be read further.
    pub(crate) fn next_qualifier(&mut self, floor: usize) -> Option<DieStop<'a>> {
        loop {
            if self.skip_by(self.abbreviations.skip_table.for_qualifiers(), floor)? {
                return Some(DieStop::Left);
            }
            let of = self.abbreviation()?;
            if of.qualifier.is_some() {
                return Some(DieStop::Scope(of));
            }
            self.skip_entry(of)?;
        }
    }

    /// Skips all entries that have rules. Returns whether it is no longer deeper than `floor`.
    fn skip_by(&mut self, rules: &[SkipRule], floor: usize) -> Option<bool> {
        let (place, has_left) = skip(rules, self.entries, (self.at, self.depth), floor)?;
        (self.at, self.depth) = place;
        Some(has_left)
    }

    /// Skips the next entry, which has the abbreviation `of`.
    pub(crate) fn skip_entry(&mut self, of: &Abbreviation) -> Option<()> {
        let mut cursor = self.cursor()?;
        self.abbreviations.skip_entry(of, &mut cursor, self.encoding)?;
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

    /// Abbreviations of these codes, tags and forms, and whether their entries have children. All functions
    /// state where their code is.
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

    /// The places where a walk stops, each with its depth. The walk skips the entries at which it stops.
    fn stops(abbreviations: &Abbreviations, entries: &[u8], also_calls: bool) -> Vec<(usize, usize)> {
        let mut walk = DieWalk { entries, abbreviations, encoding: ENCODING, at: 0, depth: 0 };
        let mut stops = Vec::new();
        while let Some(stop) = walk.next_stop(also_calls, 0) {
            stops.push((walk.at, walk.depth));
            match stop {
                DieStop::Scope(of) => walk.skip_entry(of).unwrap(),
                DieStop::Left => return stops,
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
