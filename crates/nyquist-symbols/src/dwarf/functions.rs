//! The functions and inlined calls that contain given addresses: one pass over a unit's entries.

use super::abbreviations::{Abbreviation, Role};
use super::attribute::Value;
use super::ranges::UnitView;
use super::unit::Pc;
use crate::cursor::Cursor;
use gimli::constants;
use std::ops::ControlFlow;

/// The most scopes around one address, on average: real chains have fewer than a hundred.
const MAX_DEPTH: usize = 1024;

/// The most ranges that are read of one unit: many entries of a hostile file may share one long list.
const MAX_RANGES: usize = 1 << 24;

/// A function, or a call that was inlined into one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// The entry that its name is looked for at, by its distance from the unit's start: its own, or, for an
    /// inlined call, the one of the function in the same unit that was inlined.
    pub(crate) entry: usize,
    /// `None` for a function.
    pub(crate) call: Option<Call>,
    /// The last part of it that holds a wanted address.
    pub(crate) range: (u64, u64),
}

/// Where an inlined call stands in the function that it was inlined into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call {
    pub(crate) file: u64,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// For each wanted address, the scopes around it.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    scopes: Vec<Scope>,
    /// Pairs of an address's number and a scope's, by address, from outside to inside.
    hits: Vec<(u32, u32)>,
}

impl Scopes {
    /// The scopes around wanted address number `index`, from the function to the innermost inlined call.
    pub(crate) fn around(&self, index: usize) -> impl Iterator<Item = &Scope> {
        let index = index as u32;
        let first = self.hits.partition_point(|hit| hit.0 < index);
        let count = self.hits[first..].partition_point(|hit| hit.0 == index);
        let hits = &self.hits[first..first + count];
        let scope = |hit: &(u32, u32)| &self.scopes[hit.1 as usize];
        // A function within the function, or a second one at the same place, begins the chain anew.
        let start = hits.iter().rposition(|hit| scope(hit).call.is_none()).unwrap_or(hits.len());
        hits[start..].iter().map(scope)
    }
}

/// Finds the scopes around each of `wanted`, which is sorted. `entries` are all the unit's bytes. What cannot be
/// read ends the pass; what was found before stays.
pub(crate) fn find_scopes(view: &UnitView<'_>, entries: &[u8], wanted: &[u64]) -> Scopes {
    let mut scan = Scan { view, wanted, found: Scopes::default(), ranges_left: MAX_RANGES };
    let _ = scan.run(entries);
    scan.found.hits.sort_by_key(|hit| hit.0);
    scan.found.hits.dedup();
    scan.found
}

struct Scan<'a> {
    view: &'a UnitView<'a>,
    wanted: &'a [u64],
    found: Scopes,
    ranges_left: usize,
}

impl Scan<'_> {
    fn run(&mut self, entries: &[u8]) -> Option<()> {
        let unit = self.view.unit;
        let encoding = unit.header.encoding;
        let abbreviations = &*unit.abbreviations;
        let mut cursor = Cursor::new(entries, unit.header.root as usize, encoding.little_endian);
        let mut depth = 0_usize;
        // The depth of the nearest scope around the cursor that holds no wanted address.
        let mut barren = usize::MAX;
        loop {
            let entry = cursor.position();
            let code = cursor.uleb()?;
            if code == 0 {
                depth = depth.checked_sub(1).filter(|&depth| depth > 0)?;
                continue;
            }
            let abbreviation = abbreviations.get(code)?;
            if depth <= barren {
                barren = usize::MAX;
            }
            let is_barren = barren != usize::MAX;
            match abbreviation.role {
                Role::Inlined if is_barren => abbreviations.pass(abbreviation, &mut cursor, encoding)?,
                Role::Function | Role::Inlined => {
                    let any = self.read_scope(&mut cursor, entry, abbreviation)?;
                    barren = if any { usize::MAX } else { depth };
                }
                Role::Other => abbreviations.pass(abbreviation, &mut cursor, encoding)?,
            }
            if abbreviation.has_children {
                depth += 1;
            } else if depth == 0 {
                return Some(());
            }
        }
    }

    /// Reads the attributes of a function or an inlined call; whether it contains a wanted address.
    #[inline(never)]
    fn read_scope(&mut self, cursor: &mut Cursor<'_>, mut entry: usize, of: &Abbreviation) -> Option<bool> {
        let unit = self.view.unit;
        let mut pc = Pc::default();
        let mut call = Call::default();
        for attribute in unit.abbreviations.attributes(of) {
            let value = Value::read(cursor, attribute, unit.header.encoding)?;
            match attribute.name {
                constants::DW_AT_low_pc => pc.low = Some(value),
                constants::DW_AT_high_pc => pc.high = Some(value),
                constants::DW_AT_ranges => pc.ranges = Some(value),
                // Many calls share one function, so its name is found once.
                constants::DW_AT_abstract_origin if of.role == Role::Inlined => {
                    if let Value::UnitRef(origin) = value {
                        entry = usize::try_from(origin).ok()?;
                    }
                }
                constants::DW_AT_call_file => call.file = value.number().unwrap_or(0),
                constants::DW_AT_call_line => call.line = value.number().unwrap_or(0),
                constants::DW_AT_call_column => call.column = value.number().unwrap_or(0),
                _ => {}
            }
        }
        let call = (of.role == Role::Inlined).then_some(call);
        self.add(Scope { entry, call, range: (0, 0) }, &pc)
    }

    /// Notes which addresses the scope contains; whether there is any. `None` when the unit has asked for more
    /// work than any real one does.
    fn add(&mut self, mut scope: Scope, pc: &Pc) -> Option<bool> {
        let number = self.found.scopes.len() as u32;
        let (wanted, hits) = (self.wanted, &mut self.found.hits);
        let before = hits.len();
        let most_hits = wanted.len().saturating_mul(MAX_DEPTH);
        let budget = &mut self.ranges_left;
        self.view.for_each_range(pc, |range| {
            let first = wanted.partition_point(|&address| address < range.start);
            if wanted.get(first).is_some_and(|&address| address < range.end) {
                scope.range = (range.start, range.end);
            }
            let inside = wanted[first..].iter().take_while(|&&address| address < range.end);
            hits.extend((first as u32..).zip(inside).map(|(index, _)| (index, number)));
            *budget = budget.saturating_sub(1);
            if *budget > 0 && hits.len() <= most_hits {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        if *budget == 0 || hits.len() > most_hits {
            hits.truncate(before);
            return None;
        }
        let any = hits.len() > before;
        if any {
            self.found.scopes.push(scope);
        }
        Some(any)
    }
}
