//! The compiled table, which maps addresses to rules.
//!
//! The layout is flat arrays of little-endian numbers without pointers, so that a program in the kernel can
//! use it too. A region is a range of code. Its index has one entry for each 512 bytes, which is the number
//! of the first row that begins in them. A row holds from its address up to the next row.

use crate::rule::Rule;
use nyquist_object::RelativeAddress;
use std::collections::HashMap;

/// The bytes of code of an entry of the index.
const BUCKET: u32 = 512;

/// The alignment of functions by compilers.
const ALIGNMENT: u32 = 16;

/// Code that is further apart than this is in separate regions, so that the index does not grow with the gap.
const MAX_GAP: u32 = 1 << 20;

/// Where a rule begins to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RuleRow {
    /// The low 16 bits of the address relative to the region's start.
    pub low: u16,
    /// The number of the rule.
    pub rule: u16,
}

/// A range of code with an index of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Region {
    /// The first address; a multiple of 512.
    pub start: u32,
    /// The address after the last byte.
    pub end: u32,
    /// The number of its first entry in the index. One entry follows its last bucket's.
    pub first_bucket: u32,
}

/// From addresses of one module to rules.
#[derive(Debug, Default)]
pub struct RuleTable {
    regions: Vec<Region>,
    index: Vec<u32>,
    rows: Vec<RuleRow>,
    rules: Vec<Rule>,
}

impl RuleTable {
    /// The rule for the code at the address.
    #[inline]
    pub fn rule(&self, address: RelativeAddress) -> Rule {
        self.find(address).unwrap_or(Rule::UNCOVERED)
    }

    #[inline]
    fn find(&self, address: RelativeAddress) -> Option<Rule> {
        let region = self.regions.iter().find(|region| address.0 < region.end)?;
        let offset = address.0.checked_sub(region.start)?;
        let bucket = region.first_bucket as usize + (offset / BUCKET) as usize;
        let (first, end) = (*self.index.get(bucket)? as usize, *self.index.get(bucket + 1)? as usize);
        let begun = self.rows.get(first..end)?.iter().filter(|row| row.low <= offset as u16).count();
        let row = self.rows.get((first + begun).checked_sub(1)?)?;
        self.rules.get(usize::from(row.rule)).copied()
    }

    /// The regions by address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The index: a row's number for each 512 bytes of each region.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// The rows by address.
    pub fn rows(&self) -> &[RuleRow] {
        &self.rows
    }

    /// The different rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How many bytes the table takes.
    pub fn size(&self) -> usize {
        size_of_val(&*self.regions)
            + size_of_val(&*self.index)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.rules)
    }
}

/// The distinct rules of a table.
#[derive(Debug)]
struct RuleSet {
    rules: Vec<Rule>,
    /// The numbers of the rules, if there are more than a few. The hash has a random key, because a file
    /// could choose rules that collide.
    numbers: HashMap<Rule, u16>,
    /// Recently used numbers, by a hash of the rule, because nearly all rows use the same few rules.
    recent: Box<[(Rule, u16); CACHED_RULES]>,
}

/// The number of the rule of uncovered code, in every table.
const UNCOVERED: u16 = 0;
const SLOW: u16 = 1;
const CACHED_RULES: usize = 512;
/// Up to this many rules are searched linearly. The table of a part of a module mostly has no more, and a map
/// for each part costs more than the search.
const MAX_LINEAR_RULES: usize = 64;

impl RuleSet {
    fn new() -> Self {
        let rules = vec![Rule::UNCOVERED, Rule::SLOW];
        let recent = Box::new([(Rule::UNCOVERED, UNCOVERED); CACHED_RULES]);
        Self { rules, numbers: HashMap::new(), recent }
    }

    fn slot(rule: Rule) -> usize {
        rule.hash(CACHED_RULES.ilog2())
    }

    /// The number of a rule that was used recently.
    #[inline]
    fn recent_number(&self, rule: Rule) -> Option<u16> {
        let (known, number) = self.recent[Self::slot(rule)];
        (known == rule).then_some(number)
    }

    /// The number of the rule.
    fn number(&mut self, rule: Rule) -> u16 {
        if let Some(number) = self.recent_number(rule) {
            return number;
        }
        let number = self.lookup(rule);
        self.recent[Self::slot(rule)] = (rule, number);
        number
    }

    /// The number of the rule. If there are more rules than numbers, further rules are evaluated in full.
    fn lookup(&mut self, rule: Rule) -> u16 {
        if let Some(number) = self.known_number(rule) {
            return number;
        }
        let Ok(number) = u16::try_from(self.rules.len()) else { return SLOW };
        self.rules.push(rule);
        if self.rules.len() > MAX_LINEAR_RULES {
            // The first time, this adds all existing rules.
            let known = self.numbers.len();
            self.numbers.extend(self.rules.iter().copied().skip(known).zip(known as u16..=number));
        }
        number
    }

    fn known_number(&self, rule: Rule) -> Option<u16> {
        if self.rules.len() > MAX_LINEAR_RULES {
            return self.numbers.get(&rule).copied();
        }
        self.rules.iter().position(|known| *known == rule).map(|number| number as u16)
    }
}

/// Builds a table from rows in the order of their addresses.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    table: RuleTable,
    rules: RuleSet,
    /// The number of the last row's rule.
    last_rule: u16,
    /// Where the current region begins.
    start: u32,
    /// The first address after the buckets that have an entry in the index.
    indexed: u64,
    /// The end of the code that is covered so far.
    end: u32,
}

impl TableBuilder {
    /// A builder with room for `rows` rows over `code` bytes of code.
    pub(crate) fn new(rows: usize, code: usize) -> Self {
        let table = RuleTable {
            rows: Vec::with_capacity(rows),
            index: Vec::with_capacity(code / BUCKET as usize + 2),
            ..RuleTable::default()
        };
        Self { table, rules: RuleSet::new(), last_rule: UNCOVERED, start: 0, indexed: 0, end: 0 }
    }

    /// Begins a range of covered code, which must not be before an earlier one.
    pub(crate) fn begin(&mut self, start: u32) {
        let gap = start.saturating_sub(self.end);
        if self.table.regions.is_empty() || gap > MAX_GAP {
            self.end_region();
            self.begin_region(start);
        } else if gap >= ALIGNMENT || (gap > 0 && !start.is_multiple_of(ALIGNMENT)) {
            // A smaller gap before an aligned function is padding, which never runs, so it gets no row.
            self.push_uncovered(self.end);
        }
    }

    /// Adds a row: `rule` holds from `address` on, which must not be before the last row.
    pub(crate) fn row(&mut self, address: u32, rule: Rule) {
        let rule = self.rules.number(rule);
        if rule != self.last_rule {
            self.push(address, rule);
        }
    }

    /// As [`TableBuilder::row`], if only a few numbers have to be written to allocated memory. Returns
    /// whether the row was added.
    #[inline]
    pub(crate) fn try_row(&mut self, address: u32, rule: Rule) -> bool {
        let Some(rule) = self.rules.recent_number(rule) else { return false };
        if rule == self.last_rule {
            return true;
        }
        let RuleTable { rows, index, .. } = &mut self.table;
        if rows.len() >= rows.capacity() {
            return false;
        }
        while self.indexed <= u64::from(address) {
            if index.len() >= index.capacity() {
                return false;
            }
            index.push(rows.len() as u32);
            self.indexed += u64::from(BUCKET);
        }
        self.last_rule = rule;
        rows.push(RuleRow { low: address.wrapping_sub(self.start) as u16, rule });
        true
    }

    /// Ends the range of covered code at `end`, exclusive.
    pub(crate) fn end(&mut self, end: u32) {
        self.end = end;
    }

    fn push(&mut self, address: u32, rule: u16) {
        while self.indexed <= u64::from(address) {
            self.table.index.push(self.table.rows.len() as u32);
            self.indexed += u64::from(BUCKET);
        }
        self.last_rule = rule;
        self.table.rows.push(RuleRow { low: address.wrapping_sub(self.start) as u16, rule });
    }

    fn begin_region(&mut self, address: u32) {
        self.start = address & !(BUCKET - 1);
        self.indexed = u64::from(self.start);
        let first_bucket = self.table.index.len() as u32;
        self.table.regions.push(Region { start: self.start, end: address, first_bucket });
        // Every region begins with a row, so that the first bucket has one to fall back to.
        self.push_uncovered(self.start);
    }

    fn push_uncovered(&mut self, address: u32) {
        self.push(address, UNCOVERED);
    }

    /// Ends the last row, and fills the index up to the entry after the region's last bucket.
    fn end_region(&mut self) {
        let Some(region) = self.table.regions.last_mut() else { return };
        region.end = self.end;
        let rows = self.table.rows.len() as u32;
        let buckets = (self.end - self.start).div_ceil(BUCKET) as usize;
        self.table.index.resize(region.first_bucket as usize + buckets + 1, rows);
    }

    /// The table.
    pub(crate) fn finish(mut self) -> RuleTable {
        self.end_region();
        self.table.rules = self.rules.rules;
        self.table.rules.shrink_to_fit();
        self.table.rows.shrink_to_fit();
        self.table.index.shrink_to_fit();
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{CfaKind, SavedFramePointer};

    fn rule(operand: i32) -> Rule {
        Rule::new(CfaKind::StackPointer, operand, SavedFramePointer::InRegister, 0).unwrap()
    }

    /// The start and the end of covered code, and its rows: addresses and operands.
    type CoveredCode = (u32, u32, &'static [(u32, i32)]);

    /// Builds a table of the ranges, and compares it at every address near a row with
    /// a search of the list.
    fn check(ranges: &[CoveredCode]) -> RuleTable {
        let mut builder = TableBuilder::new(0, 0);
        for &(start, end, rows) in ranges {
            builder.begin(start);
            for &(address, operand) in rows {
                builder.row(address, rule(operand));
            }
            builder.end(end);
        }
        let table = builder.finish();
        let expected = |address| {
            let range = ranges.iter().rev().find(|range| range.0 <= address && address < range.1);
            let row = range.and_then(|range| range.2.iter().rev().find(|row| row.0 <= address));
            row.map_or(Rule::UNCOVERED, |row| rule(row.1))
        };
        let ends = ranges.iter().flat_map(|range| [range.0, range.1]);
        let interesting = ranges.iter().flat_map(|range| range.2).map(|row| row.0).chain(ends);
        for address in interesting.flat_map(|at| at.saturating_sub(600)..at.saturating_add(600)) {
            assert_eq!(table.rule(RelativeAddress(address)), expected(address), "{address:#x}");
        }
        table
    }

    #[test]
    fn finds_the_row_before_an_address() {
        check(&[]);
        check(&[(0x1000, 0x1010, &[(0x1000, 8), (0x1001, 16), (0x1004, 8)])]);
        check(&[(0x1000, 0x1400, &[(0x1000, 8), (0x12ff, 16), (0x1300, 24), (0x1301, 32)])]);
        check(&[(0, 0x100, &[(0, 8)])]);
        check(&[(0x1234, 0x3_1301, &[(0x1234, 8), (0x1_1234, 16), (0x3_1300, 24)])]);
        check(&[(0x1000, 0x1010, &[(0x1000, 8)]), (0x1020, 0x1030, &[(0x1020, 8)])]);
        check(&[(0x1000, 0x1010, &[(0x1000, 8)]), (0x1011, 0x1030, &[(0x1011, 16)])]);
        check(&[(0x1000, 0x1300, &[(0x1000, 8)]), (0x1300, 0x2100, &[(0x1300, 8), (0x2000, 16)])]);
        check(&[(0xffff_f000, u32::MAX, &[(0xffff_f000, 8), (0xffff_fffe, 16)])]);
    }

    #[test]
    fn each_rule_has_one_number_up_to_the_last() {
        let mut rules = RuleSet::new();
        let operands = || (0..u16::MAX).map(|number| 8 * (i32::from(number) + 1));
        let numbers: Vec<u16> = operands().map(|operand| rules.number(rule(operand))).collect();
        // Two numbers are reserved, so two rules get none.
        let expected: Vec<u16> = (2..u16::MAX).chain([u16::MAX, SLOW]).collect();
        assert_eq!(numbers, expected);
        assert_eq!(operands().map(|operand| rules.number(rule(operand))).collect::<Vec<_>>(), numbers);
        assert_eq!([Rule::UNCOVERED, Rule::SLOW].map(|rule| rules.number(rule)), [UNCOVERED, SLOW]);
    }

    #[test]
    fn far_apart_code_makes_regions_of_their_own() {
        let table = check(&[
            (0x1000, 0x2000, &[(0x1000, 8)]),
            (0x7000_0010, 0x7000_0020, &[(0x7000_0010, 16)]),
            (0xffff_ff00, 0xffff_ffff, &[(0xffff_ff00, 8)]),
        ]);
        assert_eq!(table.regions().len(), 3);
        assert!(table.index().len() < 100);
    }

    #[test]
    fn equal_neighbours_and_padding_take_no_rows() {
        let mut builder = TableBuilder::new(0, 0);
        for (start, end) in [(0x1000, 0x1010), (0x1010, 0x1023), (0x1030, 0x1044)] {
            builder.begin(start);
            builder.row(start, rule(8));
            builder.end(end);
        }
        let table = builder.finish();
        assert_eq!(table.rows().len(), 2);
        assert_eq!(table.rule(RelativeAddress(0x1025)), rule(8));
        assert_eq!(table.rule(RelativeAddress(0x1044)), Rule::UNCOVERED);
    }
}
