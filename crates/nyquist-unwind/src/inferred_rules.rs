//! Functions of ELF files without unwind information, such as those of C libraries that are built without it:
//! finds where they begin, and derives their rules from their instructions.

use crate::code::{AllCode, CodeRange, UncoveredCode};
use crate::function_symbols::{FunctionSymbol, function_symbols};
use crate::rule::Rule;
use crate::rule_table::{RuleTable, TableBuilder};
use crate::x86_64::flow::CodeFlow;
use crate::x86_64::frame_state::FrameState;
use crate::x86_64::instructions;
use nyquist_object::elf::ElfSection;
use nyquist_object::{Architecture, ByteSource, Elf, RelativeAddress};
use std::collections::BTreeSet;
use std::ops::Range;

/// A module with less uncovered code than this only has that of linkers and start files.
pub(crate) const MIN_CODE_BYTES: usize = 512;

/// A module with more uncovered code than this has data between code, or has frame pointers.
const MAX_CODE_BYTES: usize = 1 << 20;

/// Symbols are read if they take no more bytes than this many times the uncovered code. Otherwise the
/// uncovered code is only some assembly.
const MAX_SYMBOL_RATIO: usize = 16;

/// Covered code is searched for calls if its size is at most this many times that of the uncovered code.
const MAX_COVERED_RATIO: usize = 8;

/// Sections of symbols, and whether they contain all functions.
const SYMBOLS: [(&str, bool); 2] = [(".symtab", true), (".dynsym", false)];

/// The rules of a module's uncovered functions. They are only guesses, because the starts of functions are.
/// So a step by such a rule should lead to a return address after a call.
#[derive(Debug, Default)]
pub(crate) struct InferredRules {
    table: RuleTable,
    /// The instructions of the program's first function up to its first call, at relative addresses: it has
    /// no caller.
    first: Range<u32>,
}

impl InferredRules {
    /// Follows the uncovered functions of a file for 64-bit x86. Functions are found by symbols, in the file
    /// or its debug file. If there are few symbols, they are found by instructions that call functions or
    /// take their addresses.
    pub(crate) fn new<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
        (code, covered): (&[CodeRange], &[Range<u32>]),
        uncovered: &UncoveredCode,
    ) -> Self {
        if elf.architecture() != Architecture::X86_64 {
            return Self::default();
        }
        let base = elf.image_base().0;
        let entry = elf.entry_point().and_then(|entry| relative(entry.0, base));
        let first = entry.and_then(|entry| to_first_call(uncovered, entry)).unwrap_or_default();
        if !(MIN_CODE_BYTES..=MAX_CODE_BYTES).contains(&uncovered.size()) {
            return Self { table: RuleTable::default(), first };
        }
        let mut starts = FunctionStarts {
            code: uncovered,
            has_all: false,
            functions: BTreeSet::new(),
            local: BTreeSet::new(),
        };
        starts.add_symbols(elf);
        if let Some(debug) = debug {
            starts.add_symbols(debug);
        }
        if !starts.has_all {
            starts.functions.extend(entry);
            if size_of_code(code) / MAX_COVERED_RATIO <= uncovered.size() {
                starts.add_places(&AllCode::read(elf.source(), code), covered);
            }
        }
        Self { table: follow_all(&starts), first }
    }

    /// The rule at a relative address.
    pub(crate) fn rule(&self, address: RelativeAddress) -> Rule {
        if self.first.contains(&address.0) { Rule::END } else { self.table.rule(address) }
    }

    /// How many bytes of memory the rules take.
    pub(crate) fn size(&self) -> usize {
        self.table.size()
    }
}

/// Where uncovered functions begin.
struct FunctionStarts<'a> {
    code: &'a UncoveredCode,
    /// Whether all functions have symbols.
    has_all: bool,
    functions: BTreeSet<u32>,
    /// Where functions begin, or separate parts of them, to which compilers move code that rarely runs.
    local: BTreeSet<u32>,
}

impl FunctionStarts<'_> {
    /// Adds a file's symbols of functions.
    fn add_symbols<S: ByteSource>(&mut self, elf: &Elf<S>) {
        for (name, has_all) in SYMBOLS {
            let are_few =
                |section: &&ElfSection| section.size / MAX_SYMBOL_RATIO as u64 <= self.code.size() as u64;
            let section = elf.section(name).filter(are_few);
            let Some(section) = section else { continue };
            let declared = function_symbols(elf, section).into_iter().filter(|symbol| symbol.is_declared);
            for FunctionSymbol { address, is_local, .. } in declared {
                if self.code.holds(address) {
                    if is_local { &mut self.local } else { &mut self.functions }.insert(address);
                }
            }
            self.has_all |= has_all;
        }
    }

    /// Adds the addresses that covered code calls or takes.
    fn add_places(&mut self, code: &AllCode, covered: &[Range<u32>]) {
        for range in covered {
            let places = CodeFlow::places(code.of(range).unwrap_or_default());
            let places = places.filter_map(|to| at_offset(range.start, to));
            self.functions.extend(places.filter(|start| self.code.holds(*start)));
        }
    }
}

/// A stretch of uncovered code.
struct CodeStretch<'a> {
    range: Range<u32>,
    code: &'a [u8],
    has_all_symbols: bool,
    /// `None` until something leads to the part, which is rare.
    flow: Option<CodeFlow<'a>>,
}

impl<'a> CodeStretch<'a> {
    fn flow(&mut self) -> &mut CodeFlow<'a> {
        self.flow.get_or_insert_with(|| CodeFlow::new(self.code, !self.has_all_symbols))
    }

    fn offset(&self, address: u32) -> usize {
        (address - self.range.start) as usize
    }

    /// Follows its code further, and returns the places in other parts that it refers to, by relative
    /// addresses.
    fn go_on(
        &mut self,
        how: fn(&mut CodeFlow<'a>) -> Vec<(i64, FrameState)>,
    ) -> impl Iterator<Item = (u32, FrameState)> {
        let start = self.range.start;
        let outside = self.flow.as_mut().map(how).unwrap_or_default();
        outside.into_iter().filter_map(move |(offset, state)| Some((at_offset(start, offset)?, state)))
    }
}

/// The stretches of uncovered code.
struct CodeStretches<'a>(Vec<CodeStretch<'a>>);

impl<'a> CodeStretches<'a> {
    /// The part that an address is in.
    fn at(&mut self, address: u32) -> Option<&mut CodeStretch<'a>> {
        let index = self.0.partition_point(|part| part.range.end <= address);
        self.0.get_mut(index).filter(|part| part.range.contains(&address))
    }

    /// Follows the code at these places, and all code that it leads to in any part.
    fn follow(&mut self, mut places: Vec<(u32, FrameState)>) {
        loop {
            for (place, state) in places.drain(..) {
                if let Some(part) = self.at(place) {
                    let offset = part.offset(place);
                    part.flow().add(offset, state);
                }
            }
            places.extend(self.0.iter_mut().flat_map(|part| part.go_on(CodeFlow::follow)));
            if places.is_empty() {
                return;
            }
        }
    }
}

/// Follows all functions that begin at these places, and all code that they lead to.
fn follow_all(starts: &FunctionStarts<'_>) -> RuleTable {
    let part = |(range, code)| CodeStretch { range, code, has_all_symbols: starts.has_all, flow: None };
    let mut parts = CodeStretches(starts.code.parts().map(part).collect());
    for start in starts.functions.iter().chain(&starts.local) {
        if let Some(part) = parts.at(*start) {
            let offset = part.offset(*start);
            part.flow().add_start(offset);
        }
    }
    parts.follow(starts.functions.iter().map(|start| (*start, FrameState::ENTRY)).collect());
    for flow in parts.0.iter_mut().filter_map(|part| part.flow.as_mut()) {
        flow.add_rest();
    }
    parts.follow(Vec::new());
    let places = parts.0.iter_mut().flat_map(|part| part.go_on(CodeFlow::follow_tables)).collect();
    parts.follow(places);
    let mut builder = TableBuilder::new(starts.functions.len() * 8, starts.code.size());
    for CodeStretch { range, flow, .. } in parts.0 {
        let Some(flow) = flow else { continue };
        builder.begin(range.start);
        for (offset, rule) in flow.into_rows() {
            builder.row(range.start + offset, rule);
        }
        builder.end(range.end);
    }
    builder.finish()
}

/// The relative address at an offset from another.
fn at_offset(start: u32, offset: i64) -> Option<u32> {
    u32::try_from(i64::from(start).checked_add(offset)?).ok()
}

fn relative(address: u64, base: u64) -> Option<u32> {
    u32::try_from(address.checked_sub(base)?).ok()
}

fn size_of_code(code: &[CodeRange]) -> usize {
    code.iter().map(|code| (code.range.end - code.range.start) as usize).sum()
}

/// The instructions from an uncovered one to the next call, including the call.
fn to_first_call(code: &UncoveredCode, start: u32) -> Option<Range<u32>> {
    let (bytes, at) = code.around(start).filter(|_| code.holds(start))?;
    let call = instructions::calls(bytes.get(at..)?).next()?;
    Some(start..start.checked_add(u32::try_from(call.end).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that begin in code whose functions begin at these places.
    fn check(code: &[&[u8]], has_all: bool, starts: &[u32], expected: &[(u32, Option<i64>)]) {
        let code = UncoveredCode::all(code.concat());
        let starts = FunctionStarts {
            code: &code,
            has_all,
            functions: starts.iter().copied().collect(),
            local: BTreeSet::new(),
        };
        let table = follow_all(&starts);
        let cfa = |rule: Rule| (rule != Rule::UNCOVERED).then_some(rule.operand());
        for (address, expected) in expected {
            assert_eq!(cfa(table.rule(RelativeAddress(*address))), *expected, "at {address}");
        }
    }

    #[test]
    fn functions_are_found_by_who_calls_them() {
        // call 8; ret; nops
        let first: &[u8] = &[0xe8, 3, 0, 0, 0, 0xc3, 0x66, 0x90];
        // lea rdi, [rip + 8], which is 23; jmp 28
        let second: &[u8] = &[0x48, 0x8d, 0x3d, 8, 0, 0, 0, 0xe9, 8, 0, 0, 0];
        let rest: &[u8] = &[0xcc, 0xcc, 0xcc, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xc3];
        let code = [first, second, rest];
        let known = Some(8);
        check(
            &code,
            false,
            &[0],
            &[(0, known), (8, known), (15, known), (20, None), (23, known), (28, known)],
        );
        // If all functions have symbols, an address that is taken may be a label.
        check(&code, true, &[0], &[(0, known), (8, known), (23, None), (28, known)]);
        check(&code, true, &[28], &[(0, None), (8, None), (28, known)]);
    }

    #[test]
    fn a_jump_target_begins_with_the_jumpers_frame() {
        // push rbx; je 8; pop rbx; ret; 8: call 0, which has no end; 13: a function that nothing leads to
        let bytes = [0x53, 0x0f, 0x84, 1, 0, 0, 0, 0x5b, 0xe8, 0xf3, 0xff, 0xff, 0xff, 0x55, 0xc3].to_vec();
        let code = UncoveredCode::all(bytes);
        let starts =
            FunctionStarts { code: &code, has_all: true, functions: [0].into(), local: [8, 13].into() };
        let table = follow_all(&starts);
        assert_eq!([8, 13, 14].map(|at| table.rule(RelativeAddress(at)).operand()), [16, 8, 16]);
    }

    #[test]
    fn parts_lead_to_each_other() {
        let bytes: &[u8] = &[0x53, 0xe8, 0x0a, 0, 0, 0, 0x5b, 0xc3];
        let (file, code) =
            (bytes.repeat(3), CodeRange { range: 0..24, offset: nyquist_object::FileOffset(0) });
        let covered = 8..16;
        let code = UncoveredCode::read_source(&file, &[code], std::slice::from_ref(&covered));
        let starts =
            FunctionStarts { code: &code, has_all: true, functions: [0].into(), local: BTreeSet::new() };
        let table = follow_all(&starts);
        assert_eq!([1, 17].map(|at| table.rule(RelativeAddress(at)).operand()), [16, 16]);
    }

    #[test]
    fn the_programs_first_function_has_no_caller() {
        // xor ebp, ebp; mov rdi, rsp; call; nop
        let bytes = [0x31, 0xed, 0x48, 0x89, 0xe7, 0xe8, 0, 1, 0, 0, 0x90].to_vec();
        let code = UncoveredCode::all(bytes);
        assert_eq!(to_first_call(&code, 0), Some(0..10));
        assert_eq!(to_first_call(&code, 10), None, "nothing is called");
        assert_eq!(to_first_call(&code, 11), None);
        let inferred = InferredRules { table: RuleTable::default(), first: 0..10 };
        assert_eq!([9, 10].map(|at| inferred.rule(RelativeAddress(at))), [Rule::END, Rule::UNCOVERED]);
    }
}
