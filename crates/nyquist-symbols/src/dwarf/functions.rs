//! The functions and inlined calls that contain given addresses: one pass over a unit's entries.

use super::abbreviations::{Abbreviation, Role};
use super::attribute::Value;
use super::ranges::UnitView;
use super::unit::Pc;
use crate::cursor::Cursor;
use gimli::constants;
use std::iter::successors;
use std::num::NonZeroU32;
use std::ops::{ControlFlow, Range};

/// The most scopes that are noted of one address: real chains have fewer than a hundred.
const MAX_SCOPES: u32 = 1024;

/// How much a pass may do beyond [`MAX_SCOPES`] for each address, in scopes that are tried on addresses.
const SPARE_WORK: usize = 1 << 24;

/// A function, or a call that was inlined into one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// The entry that its name is looked for at, by its distance from the unit's start: its own, or, for an
    /// inlined call, the one of the function in the same unit that was inlined.
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

/// For each wanted address, the scopes around it.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// Each part of an entry that holds a wanted address, in the order of the entries.
    parts: Vec<Scope>,
    hits: Vec<Hit>,
    /// By the number of the wanted address.
    chains: Vec<Chain>,
}

/// That a scope holds an address.
#[derive(Clone, Copy, Debug)]
struct Hit {
    scope: u32,
    /// The hit of the scope around it.
    outer: Option<NonZeroU32>,
}

/// The hits of one address.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    /// The last one, one more than its index.
    innermost: Option<NonZeroU32>,
    count: u32,
}

impl Scopes {
    fn new(wanted: usize) -> Self {
        Self { parts: Vec::new(), hits: Vec::new(), chains: vec![Chain::default(); wanted] }
    }

    /// The scopes around wanted address number `index`, from the innermost inlined call to the function.
    pub(crate) fn around(&self, index: usize) -> impl Iterator<Item = &Scope> {
        let innermost = self.chains.get(index).and_then(|chain| chain.innermost);
        let hits = successors(innermost.map(|number| self.hit(number)), |hit| {
            hit.outer.map(|number| self.hit(number))
        });
        hits.map(|hit| &self.parts[hit.scope as usize])
    }

    fn hit(&self, number: NonZeroU32) -> Hit {
        self.hits[number.get() as usize - 1]
    }

    /// Notes that the scope that is pushed next holds address number `index`, unless a part of the same entry,
    /// whose scopes begin at number `first`, does already. A function, which has no `parent`, begins the chain
    /// anew. An inlined call counts only where its parent holds the address too: else the answer for an address
    /// would depend on which others are asked for, for whose sake the parent was looked into.
    fn extend(&mut self, index: usize, first: u32, parent: Option<&Range<u32>>, work: &mut usize) -> bool {
        let chain = self.chains[index];
        let mut outer = chain.innermost;
        if outer.is_some_and(|number| self.hit(number).scope >= first) || chain.count == MAX_SCOPES {
            return false;
        }
        if let Some(parent) = parent {
            // Later scopes are further inside, or beside: the parent is not behind one that is before it.
            while let Some(hit) = outer.map(|number| self.hit(number))
                && hit.scope >= parent.end
            {
                *work = work.saturating_sub(1);
                outer = hit.outer;
            }
            if outer.is_none_or(|number| self.hit(number).scope < parent.start) {
                return false;
            }
        } else {
            outer = None;
        }
        self.hits.push(Hit { scope: self.parts.len() as u32, outer });
        let innermost = u32::try_from(self.hits.len()).ok().and_then(NonZeroU32::new);
        self.chains[index] = Chain { innermost, count: chain.count + 1 };
        true
    }
}

/// Finds the scopes around each of `wanted`, which is sorted. `entries` are all the unit's bytes. What cannot be
/// read ends the pass; what was found before stays.
pub(crate) fn find_scopes(view: &UnitView<'_>, entries: &[u8], wanted: &[u64]) -> Scopes {
    let work_left = wanted.len().saturating_mul(MAX_SCOPES as usize).saturating_add(SPARE_WORK);
    let found = Scopes::new(wanted.len());
    let ranges_left = view.range_budget();
    let mut scan = Scan { view, wanted, found, enclosing: Vec::new(), ranges_left, work_left };
    let _ = scan.run(entries);
    scan.found
}

struct Scan<'a> {
    view: &'a UnitView<'a>,
    wanted: &'a [u64],
    found: Scopes,
    /// The functions and inlined calls around the entry at hand, from outside to inside.
    enclosing: Vec<Enclosing>,
    /// How many entries of range lists may still be read.
    ranges_left: usize,
    work_left: usize,
}

/// A function or an inlined call around the entry at hand.
struct Enclosing {
    depth: usize,
    /// The numbers of its parts that hold wanted addresses. Where there are none, what is inlined into it need
    /// not be looked at.
    parts: Range<u32>,
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
                self.enclosing.pop_if(|scope| scope.depth == depth);
                continue;
            }
            let abbreviation = abbreviations.get(code)?;
            match abbreviation.role {
                Role::Inlined if self.is_barren() => {
                    abbreviations.pass(abbreviation, &mut cursor, encoding)?;
                }
                Role::Function | Role::Inlined => {
                    let parts = self.read_scope(&mut cursor, entry, abbreviation)?;
                    if abbreviation.has_children {
                        self.enclosing.push(Enclosing { depth, parts });
                    }
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

    /// Whether an inlined call at the cursor is in nothing that holds a wanted address.
    fn is_barren(&self) -> bool {
        self.enclosing.last().is_none_or(|scope| scope.parts.is_empty())
    }

    /// Reads the attributes of a function or an inlined call; the numbers of its parts that hold wanted addresses.
    #[inline(never)]
    fn read_scope(
        &mut self,
        cursor: &mut Cursor<'_>,
        mut entry: usize,
        of: &Abbreviation,
    ) -> Option<Range<u32>> {
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

    /// Notes which addresses each part of the scope contains; the numbers of the parts that contain any. `None`
    /// when the unit has asked for more work than any real one does.
    fn add(&mut self, scope: Scope, pc: &Pc) -> Option<Range<u32>> {
        let Self { view, wanted, found, enclosing, ranges_left, work_left } = self;
        let parent = enclosing.last().filter(|_| scope.call.is_some()).map(|parent| &parent.parts);
        let first = found.parts.len() as u32;
        view.for_each_range(pc, ranges_left, |range| {
            let start = wanted.partition_point(|&address| address < range.start);
            let mut any = false;
            for (index, _) in
                (start..).zip(wanted[start..].iter().take_while(|&&address| address < range.end))
            {
                if *work_left == 0 {
                    return ControlFlow::Break(());
                }
                *work_left -= 1;
                any |= found.extend(index, first, parent, work_left);
            }
            if any {
                found.parts.push(Scope { range: (range.start, range.end), ..scope });
            }
            ControlFlow::Continue(())
        });
        (*work_left > 0).then_some(first..found.parts.len() as u32)
    }
}
