//! Functions without unwind information that are followed one by one, each when a thread was interrupted in it.
//! They are found by their symbols.

use crate::code::CodeAround;
use crate::function_symbols::function_symbols;
use crate::rule::Rule;
use crate::rule_table::{RuleTable, TableBuilder};
use crate::x86_64::flow::CodeFlow;
use crate::x86_64::frame_state::FrameState;
use nyquist_object::{Architecture, ByteSource, Elf, RelativeAddress};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The longest function that is followed.
const MAX_FUNCTION_BYTES: usize = 1 << 18;

/// The most functions of a module that are followed.
const MAX_FUNCTIONS: usize = 4096;

/// The largest section of symbols that is read.
const MAX_SYMBOL_BYTES: u64 = 64 << 20;

/// The functions of one module.
#[derive(Debug, Default)]
pub(crate) struct FollowedFunctions {
    /// Where functions begin, by relative address. Read when the first one is needed.
    starts: OnceLock<Vec<u32>>,
    /// The rules of those that were followed, by the function's start.
    rules: RwLock<BTreeMap<u32, Arc<RuleTable>>>,
}

impl FollowedFunctions {
    /// The rule at a relative address in uncovered code. `starts` returns where functions begin, by address.
    pub(crate) fn rule(
        &self,
        code: &CodeAround<'_>,
        address: u32,
        starts: impl FnOnce() -> Vec<u32>,
    ) -> Rule {
        let starts = self.starts.get_or_init(starts);
        let after = starts.partition_point(|start| *start <= address);
        let Some(&start) = after.checked_sub(1).and_then(|before| starts.get(before)) else {
            return Rule::UNCOVERED;
        };
        let known = self.rules.read().unwrap_or_else(PoisonError::into_inner).get(&start).map(Arc::clone);
        let table = known.or_else(|| {
            let code_start = address.checked_sub(u32::try_from(code.at).ok()?)?;
            let from = start.checked_sub(code_start)? as usize;
            let next = starts.get(after).map_or(u32::MAX, |next| *next);
            let to = code.code.len().min((next - code_start) as usize);
            self.follow(start, code.code.get(from..to)?)
        });
        table.map_or(Rule::UNCOVERED, |table| table.rule(RelativeAddress(address)))
    }

    fn follow(&self, start: u32, function: &[u8]) -> Option<Arc<RuleTable>> {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if function.len() > MAX_FUNCTION_BYTES || rules.len() >= MAX_FUNCTIONS {
            return None;
        }
        let table = Arc::new(follow(start, function));
        rules.insert(start, Arc::clone(&table));
        Some(table)
    }
}

/// The rules of one function.
fn follow(start: u32, function: &[u8]) -> RuleTable {
    let mut flow = CodeFlow::new(function, false);
    flow.add(0, FrameState::ENTRY);
    flow.follow();
    flow.follow_tables();
    let rows = flow.into_rows();
    let mut builder = TableBuilder::new(rows.len(), function.len());
    builder.begin(start);
    for (offset, rule) in rows {
        builder.row(start + offset, rule);
    }
    builder.end(start + function.len() as u32);
    builder.finish()
}

/// Where the functions of a file for 64-bit x86 begin, by relative address, as far as it has symbols.
pub(crate) fn function_starts<S: ByteSource>(elf: &Elf<S>) -> Vec<u32> {
    if elf.architecture() != Architecture::X86_64 {
        return Vec::new();
    }
    let sections = [".symtab", ".dynsym"].into_iter().filter_map(|name| elf.section(name));
    let sections = sections.filter(|section| section.size <= MAX_SYMBOL_BYTES);
    let symbols = sections.flat_map(|section| function_symbols(elf, section));
    let functions = symbols.filter(|symbol| symbol.is_declared || !symbol.is_local);
    let mut starts: Vec<u32> = functions.map(|symbol| symbol.address).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::UncoveredExtent;

    #[test]
    fn a_function_is_followed_from_its_symbol_alone() {
        // At 0x100: push rbx; jmp [rax]; at 0x103: sub rsp, 24; mov eax, 1; jmp [rax]; and data.
        let code = [&[0x53, 0xff, 0x20][..], &[0x48, 0x83, 0xec, 24, 0xb8, 1, 0, 0, 0, 0xff, 0x20], &[6, 6]];
        let (code, functions) = (code.concat(), FollowedFunctions::default());
        let rule = |address: u32| {
            let around = CodeAround::new((&code, (address - 0x100) as usize), UncoveredExtent::Any);
            functions.rule(&around, address, || vec![0x100, 0x103])
        };
        let distances = [0x100, 0x101, 0x103, 0x107, 0x10c, 0x10e].map(|address| rule(address).operand());
        assert_eq!(distances, [8, 16, 8, 32, 32, 0]);
        let none = FollowedFunctions::default();
        let around = CodeAround::new((&code, 4), UncoveredExtent::Any);
        assert_eq!(none.rule(&around, 0x104, || vec![0x105]), Rule::UNCOVERED);
        assert_eq!(none.rule(&around, 0x106, || unreachable!("they are read once")).operand(), 8);
    }
}
