//! A compact table of the lengths of entries, for skipping them. It is used for every entry of a unit, and
//! most entries are skipped, so it determines the speed of the whole search.

use super::form::SkipStep;

/// How to skip an entry.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub(crate) struct SkipRule {
    /// The bytes of the entry with a code of one byte, without the block in it.
    length: u16,
    /// The bytes before the number that varies.
    before: u16,
    /// The bits of that number that are the length of a block.
    mask: u8,
    /// 1 if children follow, -1 at the end of a list of siblings.
    depth_change: i8,
    /// The bits of the number, and [`ALWAYS`], that must be 0. If one is set, the entry cannot be skipped in
    /// this way. It is 0 if no number varies.
    stops_on: u16,
}

/// A bit above those of a number of one byte.
const ALWAYS: u16 = 0x100;

/// The bit that a number continues in another byte.
const GOES_ON: u16 = 0x80;

impl SkipRule {
    /// The entry has to be read, or its length is only known by its steps.
    const STOP: Self = Self { length: 0, before: 0, mask: 0, stops_on: ALWAYS, depth_change: 0 };

    /// The end of a list of siblings.
    const END: Self = Self { length: 1, stops_on: 0, depth_change: -1, ..Self::STOP };

    /// The rule of steps. A varying number, a LEB128, is a value, or the length of a block after it.
    fn of(steps: &[SkipStep], has_children: bool) -> Self {
        let (stops_on, before, mask, after) = match *steps {
            [] => (0, 0, 0, 0),
            [SkipStep::Bytes(bytes)] => (0, bytes, 0, 0),
            [SkipStep::Leb] => (GOES_ON, 0, 0, 1),
            [SkipStep::Leb, SkipStep::Bytes(after)] => (GOES_ON, 0, 0, 1 + after),
            [SkipStep::Bytes(before), SkipStep::Leb] => (GOES_ON, before, 0, 1),
            [SkipStep::Bytes(before), SkipStep::Leb, SkipStep::Bytes(after)] => {
                (GOES_ON, before, 0, 1 + after)
            }
            [SkipStep::Block(0)] => (GOES_ON, 0, 0x7f, 1),
            [SkipStep::Block(0), SkipStep::Bytes(after)] => (GOES_ON, 0, 0x7f, 1 + after),
            [SkipStep::Bytes(before), SkipStep::Block(0)] => (GOES_ON, before, 0x7f, 1),
            [SkipStep::Bytes(before), SkipStep::Block(0), SkipStep::Bytes(after)] => {
                (GOES_ON, before, 0x7f, 1 + after)
            }
            _ => return Self::STOP,
        };
        let depth_change = has_children.into();
        match ((1 + before + after).try_into(), (1 + before).try_into()) {
            (Ok(length), Ok(before)) => Self { length, before, mask, depth_change, stops_on },
            _ => Self::STOP,
        }
    }
}

/// The number of codes that take one byte. A table has at least as many rules, so that a look-up of such a
/// code needs no bounds check.
const SHORT_CODES: usize = 0x80;

/// How to skip the entries of a unit, by their abbreviation code.
#[derive(Debug)]
pub(crate) struct DieSkipTable {
    /// Rules that stop at functions and inlined calls.
    calls: Vec<SkipRule>,
    /// Rules that only stop at functions with code. Others contain no address, and calls that are inlined
    /// into them are not looked for in this case.
    functions: Vec<SkipRule>,
    /// Rules that stop at entries that qualify the names of the functions in them.
    qualifiers: Vec<SkipRule>,
}

impl Default for DieSkipTable {
    fn default() -> Self {
        let [calls, functions, qualifiers] = [const { SkipRule::END }; 3].map(|end| vec![end]);
        Self { calls, functions, qualifiers }
    }
}

/// The searches that stop at entries of an abbreviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopsAt {
    /// Searches for functions and inlined calls.
    pub(crate) calls: bool,
    /// Searches for functions that have code.
    pub(crate) functions: bool,
    /// Searches for qualifiers of names.
    pub(crate) qualifiers: bool,
}

impl DieSkipTable {
    /// Adds the abbreviation with the next code.
    pub(crate) fn push(&mut self, stops_at: StopsAt, steps: &[SkipStep], has_children: bool) {
        let skip = SkipRule::of(steps, has_children);
        let rule = |stops: bool| if stops { SkipRule::STOP } else { skip };
        self.calls.push(rule(stops_at.calls));
        self.functions.push(rule(stops_at.functions));
        self.qualifiers.push(rule(stops_at.qualifiers));
    }

    /// Completes the table. It must be called after all rules were added. Without it no entry can be skipped.
    pub(crate) fn finish(&mut self) {
        for rules in [&mut self.calls, &mut self.functions, &mut self.qualifiers] {
            rules.resize(rules.len().max(SHORT_CODES), SkipRule::STOP);
        }
    }

    /// The rules of searches for functions and, if `also_calls`, inlined calls.
    pub(crate) fn for_functions(&self, also_calls: bool) -> &[SkipRule] {
        if also_calls { &self.calls } else { &self.functions }
    }

    /// The rules of searches for qualifiers of names.
    pub(crate) fn for_qualifiers(&self) -> &[SkipRule] {
        &self.qualifiers
    }
}

/// Skips the entries from `at` on, as far as there are rules. Returns the position that it has reached, the
/// depth there, and whether that is no longer deeper than `floor`.
pub(crate) fn skip(
    rules: &[SkipRule],
    entries: &[u8],
    (at, depth): (usize, usize),
    floor: usize,
) -> Option<((usize, usize), bool)> {
    let short = rules.first_chunk::<SHORT_CODES>()?;
    let (mut at, mut depth, floor) = (at, depth as isize, floor as isize);
    loop {
        let first = *entries.get(at)?;
        let (rule, start) = match short.get(usize::from(first)) {
            Some(rule) => (rule, at),
            None => (long(rules, first, *entries.get(at + 1)?), at + 1),
        };
        let mut next = start + usize::from(rule.length);
        if rule.stops_on != 0 {
            let varying = entries.get(start + usize::from(rule.before)).copied().unwrap_or(u8::MAX);
            if (u16::from(varying) | ALWAYS) & rule.stops_on != 0 {
                return Some(((at, depth as usize), false));
            }
            next += usize::from(varying & rule.mask);
        }
        at = next;
        depth += isize::from(rule.depth_change);
        if depth <= floor {
            return Some(((at, usize::try_from(depth).ok()?), true));
        }
    }
}

/// The rule of a code of two bytes. Longer codes, and codes that would fit into one byte, have no rule.
#[inline]
fn long(rules: &[SkipRule], first: u8, second: u8) -> &SkipRule {
    let code = usize::from(first & 0x7f) | usize::from(second) << 7;
    let is_canonical = (1..0x80).contains(&second);
    rules.get(code).filter(|_| is_canonical).unwrap_or(&SkipRule::STOP)
}
