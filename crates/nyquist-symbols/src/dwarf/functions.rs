//! The functions and inlined calls that contain given addresses: one pass over a unit's entries.

use super::attribute::Value;
use super::ranges::UnitView;
use super::unit::Pc;
use crate::cursor::Cursor;
use gimli::constants;

/// The longest chain of calls that are inlined into each other which is followed. Compilers stop far earlier.
const MAX_INLINED: usize = 256;

/// A function, or a call that was inlined into one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// Its entry's distance from the unit's start.
    pub(crate) entry: usize,
    /// `None` for a function.
    pub(crate) call: Option<Call>,
    /// The part of it that holds the address.
    pub(crate) range: (u64, u64),
}

/// Where an inlined call stands in the function that it was inlined into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call {
    pub(crate) file: u64,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Finds the scopes around each of `wanted`, which is sorted: from the function to the innermost inlined call.
/// `entries` are all the unit's bytes. What cannot be read ends the pass; what was found before stays.
pub(crate) fn find_scopes(view: &UnitView<'_>, entries: &[u8], wanted: &[u64]) -> Vec<Vec<Scope>> {
    let chains = vec![Vec::new(); wanted.len()];
    let mut scan = Scan { view, wanted, chains, enclosing: Vec::new(), budget: view.range_budget() };
    let _ = scan.run(entries);
    scan.chains
}

struct Scan<'a> {
    view: &'a UnitView<'a>,
    wanted: &'a [u64],
    chains: Vec<Vec<Scope>>,
    /// The functions and inlined calls around the entry at hand, from outside to inside.
    enclosing: Vec<Enclosing>,
    /// How many entries of range lists may still be read.
    budget: u64,
}

/// A scope around the entry at hand.
struct Enclosing {
    depth: usize,
    entry: usize,
    /// Whether it holds no wanted address, so that what is inlined into it need not be looked at.
    is_barren: bool,
}

impl Scan<'_> {
    fn run(&mut self, entries: &[u8]) -> Option<()> {
        let unit = self.view.unit;
        let encoding = unit.header.encoding;
        let abbreviations = &*unit.abbreviations;
        let mut cursor = Cursor::new(entries, unit.header.root as usize, encoding.little_endian);
        let mut depth = 0_usize;
        loop {
            let entry = cursor.position();
            let code = cursor.uleb()?;
            if code == 0 {
                depth = depth.checked_sub(1).filter(|&depth| depth > 0)?;
                continue;
            }
            let abbreviation = abbreviations.get(code)?;
            while self.enclosing.pop_if(|scope| scope.depth >= depth).is_some() {}
            let is_function = abbreviation.tag == constants::DW_TAG_subprogram;
            let is_inlined = abbreviation.tag == constants::DW_TAG_inlined_subroutine;
            if is_function || (is_inlined && self.enclosing.last().is_some_and(|scope| !scope.is_barren)) {
                let attributes = abbreviations.attributes(abbreviation);
                let mut pc = Pc::default();
                let mut call = Call::default();
                for attribute in attributes {
                    let value = Value::read(&mut cursor, attribute, encoding)?;
                    match attribute.name {
                        constants::DW_AT_low_pc => pc.low = Some(value),
                        constants::DW_AT_high_pc => pc.high = Some(value),
                        constants::DW_AT_ranges => pc.ranges = Some(value),
                        constants::DW_AT_call_file => call.file = value.number().unwrap_or(0),
                        constants::DW_AT_call_line => call.line = value.number().unwrap_or(0),
                        constants::DW_AT_call_column => call.column = value.number().unwrap_or(0),
                        _ => {}
                    }
                }
                let scope = Scope { entry, call: is_inlined.then_some(call), range: (0, 0) };
                let is_barren = !self.add(scope, &pc);
                self.enclosing.push(Enclosing { depth, entry, is_barren });
            } else {
                abbreviations.pass(abbreviation, &mut cursor, encoding)?;
            }
            if abbreviation.has_children {
                depth += 1;
            } else if depth == 0 {
                return Some(());
            }
        }
    }

    /// Appends the scope to the chains of the addresses that it contains; whether there is any.
    fn add(&mut self, scope: Scope, pc: &Pc) -> bool {
        let Self { wanted, chains, enclosing, .. } = self;
        let parent = enclosing.last().filter(|_| scope.call.is_some()).map(|parent| parent.entry);
        let mut any = false;
        self.view.for_each_range(pc, &mut self.budget, |range| {
            let first = wanted.partition_point(|&address| address < range.start);
            let inside = wanted[first..].iter().take_while(|&&address| address < range.end);
            for (chain, _) in chains[first..].iter_mut().zip(inside) {
                any |= extend(chain, parent, Scope { range: (range.start, range.end), ..scope });
            }
        });
        any
    }
}

/// Appends a scope to the chain of an address in it. A function within the function, or a second one at the same
/// place, begins the chain anew. An inlined call counts only where its parent holds the address too: else the
/// answer for an address would depend on which others are asked for, for whose sake the parent was looked into.
fn extend(chain: &mut Vec<Scope>, parent: Option<usize>, scope: Scope) -> bool {
    if chain.last().is_some_and(|last| last.entry == scope.entry) {
        return true;
    }
    let kept = match parent {
        None => Some(0),
        Some(parent) => chain.iter().rposition(|outer| outer.entry == parent).map(|at| at + 1),
    };
    let Some(kept) = kept.filter(|&kept| kept < MAX_INLINED) else { return false };
    chain.truncate(kept);
    chain.push(scope);
    true
}
