//! The functions and inlined calls that contain given addresses: one pass over a unit's entries.

use super::abbreviations::Abbreviation;
use super::attribute::AttributeValue;
use super::die_walk::{DieStop, DieWalk};
use super::pc::PcAttributes;
use super::ranges::{ListBuffers, RangeLists, UnitView};
use super::role::Role;
use super::scope_layout::CallSite;
use std::iter::successors;
use std::num::NonZeroU32;
use std::ops::{ControlFlow, Range};

/// The most scopes that are recorded for one address. Real chains have fewer than a hundred.
const MAX_SCOPES: u32 = 1024;

/// The work that a pass may do beyond [`MAX_SCOPES`] for each address, in scopes that are compared with
/// addresses.
const SPARE_WORK: usize = 1 << 24;

/// A function, or a call that was inlined into one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// The entry with its name, by the offset in `.debug_info`: its own entry or, for an inlined call, that
    /// of the inlined function.
    pub(crate) entry: u64,
    /// `None` for a function.
    pub(crate) call: Option<InlinedCallSite>,
    /// The range that contains the address.
    pub(crate) range: (u64, u64),
}

/// The place of an inlined call in the function that it was inlined into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InlinedCallSite {
    pub(crate) file: u64,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl From<CallSite> for InlinedCallSite {
    fn from(site: CallSite) -> Self {
        let number = |value: Option<AttributeValue>| value.and_then(AttributeValue::number).unwrap_or(0);
        Self { file: number(site.file), line: number(site.line), column: number(site.column) }
    }
}

/// For each requested address, the scopes around it.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// Each range of an entry that contains a requested address, in the order of the entries.
    parts: Vec<Scope>,
    hits: Vec<ScopeHit>,
    /// By the index of the requested address.
    chains: Vec<HitChain>,
}

/// Records that a scope contains an address.
#[derive(Clone, Copy, Debug)]
struct ScopeHit {
    scope: u32,
    /// The hit of the scope around it.
    outer: Option<NonZeroU32>,
}

/// The hits of one address.
#[derive(Clone, Copy, Debug, Default)]
struct HitChain {
    /// The last hit, as its index plus one.
    innermost: Option<NonZeroU32>,
    count: u32,
}

impl Scopes {
    fn new(requested: usize) -> Self {
        Self { parts: Vec::new(), hits: Vec::new(), chains: vec![HitChain::default(); requested] }
    }

    /// The scopes around requested address number `index`, from the innermost inlined call to the function.
    pub(crate) fn around(&self, index: usize) -> impl Iterator<Item = &Scope> + Clone {
        let innermost = self.chains.get(index).and_then(|chain| chain.innermost);
        let hits = successors(innermost.map(|number| self.hit(number)), |hit| {
            hit.outer.map(|number| self.hit(number))
        });
        hits.map(|hit| &self.parts[hit.scope as usize])
    }

    fn hit(&self, number: NonZeroU32) -> ScopeHit {
        self.hits[number.get() as usize - 1]
    }

    /// Records that the scope that is pushed next contains address number `index`. This is not done if
    /// another range of the same entry, whose scopes begin at number `first`, already contains it. A
    /// function, which has no `parent`, restarts the chain. An inlined call only counts if its parent also
    /// contains the address. Otherwise the answer for an address would depend on which other addresses in the
    /// same parent are looked up.
    fn extend(&mut self, index: usize, first: u32, parent: Option<&Range<u32>>, work: &mut usize) -> bool {
        let chain = self.chains[index];
        let mut outer = chain.innermost;
        if outer.is_some_and(|number| self.hit(number).scope >= first) || chain.count == MAX_SCOPES {
            return false;
        }
        if let Some(parent) = parent {
            // Later scopes are further inside or are siblings, so the parent is not after a scope that
            // precedes it.
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
        self.hits.push(ScopeHit { scope: self.parts.len() as u32, outer });
        let innermost = u32::try_from(self.hits.len()).ok().and_then(NonZeroU32::new);
        self.chains[index] = HitChain { innermost, count: chain.count + 1 };
        true
    }
}

/// Finds the scopes around each of `requested`, which is sorted. `entries` are all the unit's bytes. An entry
/// that cannot be read ends the pass, and results before it stay.
pub(crate) fn find_scopes(
    view: &UnitView<'_>,
    entries: &[u8],
    requested: &[u64],
    buffers: &mut ListBuffers,
) -> Scopes {
    let work_left = requested.len().saturating_mul(MAX_SCOPES as usize).saturating_add(SPARE_WORK);
    let found = Scopes::new(requested.len());
    let lists = RangeLists::new(view.file, view.addresses, buffers);
    let unit = view.unit;
    let walk = DieWalk {
        entries,
        abbreviations: &unit.abbreviations,
        encoding: unit.header.encoding,
        at: unit.header.root as usize,
        depth: 0,
    };
    let mut scan = FunctionScan { view, walk, requested, found, enclosing: Vec::new(), lists, work_left };
    let _ = scan.run();
    scan.found
}

struct FunctionScan<'a> {
    view: &'a UnitView<'a>,
    walk: DieWalk<'a>,
    requested: &'a [u64],
    found: Scopes,
    /// The functions and inlined calls around the current entry, from outside to inside.
    enclosing: Vec<EnclosingScope>,
    lists: RangeLists<'a>,
    work_left: usize,
}

/// A function or an inlined call around the current entry.
struct EnclosingScope {
    depth: usize,
    held: ScopeAddresses,
}

/// The requested addresses that a scope contains.
#[derive(Clone, Debug, Default)]
struct ScopeAddresses {
    /// The indices of its ranges that contain any. If there are none, inlined calls in it need not be read.
    parts: Range<u32>,
    /// The range from the first to the last of the addresses. Other addresses may be between them.
    requested: Range<usize>,
}

impl FunctionScan<'_> {
    fn run(&mut self) -> Option<()> {
        loop {
            let around = self.enclosing.last();
            let is_fertile = around.is_some_and(|scope| !scope.held.parts.is_empty());
            let floor = around.map_or(0, |scope| scope.depth);
            match self.walk.next_stop(is_fertile, floor)? {
                DieStop::Scope(of) => {
                    let held = self.read_scope(of)?;
                    // Also inside of an entry that contains no address, only functions are looked for.
                    if of.has_children && (is_fertile || !held.parts.is_empty()) {
                        self.enclosing.push(EnclosingScope { depth: self.walk.depth, held });
                    }
                    self.walk.skip_entry(of)?;
                }
                DieStop::Left => drop(self.enclosing.pop()),
            }
            if self.walk.depth == 0 {
                return Some(());
            }
        }
    }

    /// Reads the attributes of the next function or inlined call. Returns the requested addresses that it
    /// contains.
    fn read_scope(&mut self, of: &Abbreviation) -> Option<ScopeAddresses> {
        let unit = self.view.unit;
        let encoding = unit.header.encoding;
        let mut cursor = self.walk.cursor()?;
        let attributes = unit.abbreviations.attributes(of);
        if let Some(layout) = unit.abbreviations.layout(of) {
            let held = self.hold(of.role, &layout.pc(cursor, attributes, encoding))?;
            if !held.parts.is_empty() {
                self.describe(&held.parts, of.role, layout.call_site(cursor, attributes, encoding));
            }
            return Some(held);
        }
        let (mut pc, mut site) = (PcAttributes::default(), CallSite::default());
        for attribute in attributes {
            let value = AttributeValue::read(&mut cursor, attribute, encoding)?;
            pc.take(attribute.name, value);
            site.take(attribute.name, value);
        }
        let held = self.hold(of.role, &pc)?;
        self.describe(&held.parts, of.role, site);
        Some(held)
    }

    /// Adds the description of the next entry's scope to its ranges.
    fn describe(&mut self, parts: &Range<u32>, role: Role, site: CallSite) {
        let start = self.view.unit.header.offset;
        let own = start + self.walk.at as u64;
        let (entry, call) = match (role, site.origin) {
            // Many calls share one function, so its name is only looked up once.
            (Role::Inlined, Some(AttributeValue::UnitRef(origin))) => {
                (start.saturating_add(origin), Some(site.into()))
            }
            (Role::Inlined, Some(AttributeValue::InfoRef(origin))) => (origin, Some(site.into())),
            (Role::Inlined, _) => (own, Some(site.into())),
            _ => (own, None),
        };
        for part in &mut self.found.parts[parts.start as usize..parts.end as usize] {
            *part = Scope { entry, call, ..*part };
        }
    }

    /// Records which addresses each range of the scope contains. `None` if the unit has caused more work than
    /// any real one does.
    fn hold(&mut self, role: Role, pc: &PcAttributes) -> Option<ScopeAddresses> {
        let Self { view, requested, found, enclosing, lists, work_left, .. } = self;
        let parent = enclosing.last().map(|parent| &parent.held).filter(|_| role == Role::Inlined);
        let among = parent.map_or(0..requested.len(), |parent| parent.requested.clone());
        let parent = parent.map(|parent| &parent.parts);
        let first = found.parts.len() as u32;
        let mut held: Option<Range<usize>> = None;
        view.for_each_range(pc, lists, |range| {
            let candidates = &requested[among.clone()];
            let start = among.start + candidates.partition_point(|&address| address < range.start);
            let inside = requested[start..among.end].iter().take_while(|&&address| address < range.end);
            let mut any = false;
            for (index, _) in (start..).zip(inside) {
                if *work_left == 0 {
                    return ControlFlow::Break(());
                }
                *work_left -= 1;
                if found.extend(index, first, parent, work_left) {
                    let held = held.get_or_insert(index..index + 1);
                    *held = held.start.min(index)..held.end.max(index + 1);
                    any = true;
                }
            }
            if any {
                found.parts.push(Scope { entry: 0, call: None, range: (range.start, range.end) });
            }
            ControlFlow::Continue(())
        });
        let parts = first..found.parts.len() as u32;
        (*work_left > 0).then(|| ScopeAddresses { parts, requested: held.unwrap_or_default() })
    }
}
