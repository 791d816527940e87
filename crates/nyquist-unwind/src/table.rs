//! The compiled table: from an address to a rule.
//!
//! The layout is flat arrays of little-endian numbers without pointers, so that a program in the kernel can
//! walk it too. A region is a range of code; its index has one entry for each 256 bytes, which is the number
//! of the first row that begins in them. A row holds from its address up to the next row's.

use crate::rule::Rule;
use nyquist_object::RelativeAddress;
use std::collections::HashMap;

/// How many bytes of code an entry of the index stands for.
const BUCKET: u32 = 256;

/// Code further apart than this is in regions of its own, so that the index does not grow with the gap.
const MAX_GAP: u32 = 1 << 20;

/// Where a rule begins to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    /// The low 16 bits of the address relative to the region's start.
    pub low: u16,
    /// The number of the rule.
    pub rule: u16,
}

/// A range of code with an index of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Region {
    /// The first address; a multiple of 256.
    pub start: u32,
    /// The address after the last byte.
    pub end: u32,
    /// The number of its first entry in the index. One entry follows its last bucket's.
    pub first_bucket: u32,
}

/// From addresses of one module to rules.
#[derive(Debug, Default)]
pub struct Table {
    regions: Vec<Region>,
    index: Vec<u32>,
    rows: Vec<Row>,
    rules: Vec<Rule>,
}

impl Table {
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

    /// The index: a row's number for each 256 bytes of each region.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// The rows by address.
    pub fn rows(&self) -> &[Row] {
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

/// The rules of a table, each once.
#[derive(Debug)]
pub(crate) struct RuleSet {
    rules: Vec<Rule>,
    numbers: HashMap<Rule, u16>,
    /// The last numbers given, by a hash of the rule: neighbouring rows use the same few rules.
    recent: [(Rule, u16); 64],
}

/// The number of the rule of uncovered code, in every table.
pub(crate) const UNCOVERED: u16 = 0;
const SLOW: u16 = 1;

impl RuleSet {
    pub(crate) fn new() -> Self {
        let rules = vec![Rule::UNCOVERED, Rule::SLOW];
        let numbers = HashMap::from([(Rule::UNCOVERED, UNCOVERED), (Rule::SLOW, SLOW)]);
        Self { rules, numbers, recent: [(Rule::UNCOVERED, UNCOVERED); 64] }
    }

    /// The number of the rule. Where there are more rules than numbers, further ones are evaluated in full.
    pub(crate) fn number(&mut self, rule: Rule) -> u16 {
        let hash = (rule.operand / 8) as usize ^ (rule.saved as usize) << 3 ^ rule.kind() as usize;
        let slot = hash % self.recent.len();
        if let Some(&(known, number)) = self.recent.get(slot)
            && known == rule
        {
            return number;
        }
        let number = self.lookup(rule);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (rule, number);
        }
        number
    }

    fn lookup(&mut self, rule: Rule) -> u16 {
        if let Some(&number) = self.numbers.get(&rule) {
            return number;
        }
        let Ok(number) = u16::try_from(self.rules.len()) else { return SLOW };
        self.rules.push(rule);
        self.numbers.insert(rule, number);
        number
    }
}

/// Makes a table of rows that come by address.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    table: Table,
    last_rule: u16,
}

impl TableBuilder {
    /// A builder with room for `rows` rows over `code` bytes of code.
    pub(crate) fn new(rows: usize, code: usize) -> Self {
        let table = Table {
            rows: Vec::with_capacity(rows),
            index: Vec::with_capacity(code / BUCKET as usize + 2),
            ..Table::default()
        };
        Self { table, last_rule: UNCOVERED }
    }

    /// Says that `rule` holds from `address` on. Addresses must not fall. Code is covered up to the next call
    /// with [`UNCOVERED`].
    pub(crate) fn push(&mut self, address: u32, rule: u16) {
        if rule == self.last_rule && rule == UNCOVERED {
            return;
        }
        let far =
            |region: &Region| self.last_rule == UNCOVERED && address.saturating_sub(region.end) > MAX_GAP;
        if self.table.regions.last().is_none_or(far) {
            self.begin_region(address);
        }
        let Some(region) = self.table.regions.last_mut() else { return };
        let (start, first_bucket) = (region.start, region.first_bucket as usize);
        region.end = region.end.max(address);
        let bucket = first_bucket + (address.saturating_sub(start) / BUCKET) as usize;
        let rows = self.table.rows.len() as u32;
        if rule == self.last_rule {
            return;
        }
        while self.table.index.len() <= bucket {
            self.table.index.push(rows);
        }
        self.last_rule = rule;
        self.table.rows.push(Row { low: (address - start) as u16, rule });
    }

    fn begin_region(&mut self, address: u32) {
        self.end_region();
        let start = address & !(BUCKET - 1);
        let first_bucket = self.table.index.len() as u32;
        self.table.regions.push(Region { start, end: address, first_bucket });
        self.table.index.push(self.table.rows.len() as u32);
        // Every region begins with a row, so that the first bucket has one to fall back to.
        self.table.rows.push(Row { low: 0, rule: UNCOVERED });
        self.last_rule = UNCOVERED;
    }

    /// Fills the index up to the entry after the region's last bucket.
    fn end_region(&mut self) {
        let Some(region) = self.table.regions.last() else { return };
        let buckets = (region.end - region.start).div_ceil(BUCKET) as usize;
        let len = region.first_bucket as usize + buckets + 1;
        let rows = self.table.rows.len() as u32;
        if self.table.index.len() < len {
            self.table.index.resize(len, rows);
        }
    }

    /// The table, with the rules that its rows name.
    pub(crate) fn finish(mut self, rules: RuleSet) -> Table {
        self.end_region();
        self.table.rules = rules.rules;
        self.table.rules.shrink_to_fit();
        self.table.rows.shrink_to_fit();
        self.table.index.shrink_to_fit();
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Kind, SavedFramePointer};

    fn rule(operand: i32) -> Rule {
        Rule::new(Kind::StackPointer, operand, SavedFramePointer::InRegister, 0).unwrap()
    }

    /// Builds a table of (address, operand) with operand 0 for uncovered code, and compares it at every
    /// address near a row with a search of the list.
    fn check(rows: &[(u32, i32)]) -> Table {
        let mut rules = RuleSet::new();
        let mut builder = TableBuilder::new(0, 0);
        let expect = |operand| if operand == 0 { Rule::UNCOVERED } else { rule(operand) };
        for &(address, operand) in rows {
            builder.push(address, rules.number(expect(operand)));
        }
        let table = builder.finish(rules);
        let near =
            rows.iter().flat_map(|&(address, _)| address.saturating_sub(300)..address.saturating_add(300));
        for address in near {
            let row = rows.iter().rev().find(|row| row.0 <= address);
            let expected = row.map_or(Rule::UNCOVERED, |row| expect(row.1));
            assert_eq!(table.rule(RelativeAddress(address)), expected, "{address:#x}");
        }
        table
    }

    #[test]
    fn finds_the_row_before_an_address() {
        check(&[]);
        check(&[(0x1000, 8), (0x1001, 16), (0x1004, 8), (0x1010, 0)]);
        check(&[(0x1000, 8), (0x12ff, 16), (0x1300, 24), (0x1301, 32), (0x1400, 0)]);
        check(&[(0, 8), (0x100, 0)]);
        check(&[(0x1234, 8), (0x1_1234, 16), (0x3_1300, 24), (0x3_1301, 0)]);
        check(&[(0x1000, 8), (0x1010, 0), (0x1020, 8), (0x1030, 0)]);
        check(&[(0x1000, 8), (0x1100, 8), (0x2000, 8), (0x2100, 0)]);
    }

    #[test]
    fn far_apart_code_makes_regions_of_their_own() {
        let table = check(&[
            (0x1000, 8),
            (0x2000, 0),
            (0x7000_0010, 16),
            (0x7000_0020, 0),
            (0xffff_ff00, 8),
            (0xffff_ffff, 0),
        ]);
        assert_eq!(table.regions().len(), 3);
        assert!(table.index().len() < 100);
    }

    #[test]
    fn equal_neighbours_are_one_row() {
        let table = check(&[(0x1000, 8), (0x1008, 8), (0x1010, 16), (0x1020, 0)]);
        assert_eq!(table.rows().len(), 4);
    }
}
