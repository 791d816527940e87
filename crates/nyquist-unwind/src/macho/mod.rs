//! Modules of Mach-O files: compact unwind information, and call frame information for functions that it
//! cannot express.

mod unwind_info;

use crate::Damage;
use crate::cfi::{FrameSection, SectionKind};
use crate::code::CodeRange;
use crate::compile::{FunctionDescription, FunctionRange};
use nyquist_object::{ByteSource, MachO, RelativeAddress, Svma};
use std::ops::Range;

/// The parts of a file that are compiled.
#[derive(Debug)]
pub(crate) struct UnwindParts {
    /// The ranges of code, by address.
    pub(crate) code: Vec<CodeRange>,
    /// By address; none overlap.
    pub(crate) functions: Vec<FunctionRange>,
    /// `__eh_frame`.
    pub(crate) sections: Vec<FrameSection>,
}

/// Reads the parts that are compiled.
pub(crate) fn read<S: ByteSource>(file: &MachO<S>, damage: &mut Damage) -> UnwindParts {
    let code = code_ranges(file);
    let mut read = |name| match file.section_data("__TEXT", name) {
        Ok(bytes) => bytes,
        Err(error) => {
            damage.add(|| format!("{name} is unreadable: {error}"));
            None
        }
    };
    let (unwind_info, eh_frame) = (read("__unwind_info"), read("__eh_frame"));
    let entries = unwind_info.and_then(|bytes| match unwind_info::entries(&bytes) {
        Ok(entries) => Some(entries),
        Err(reason) => {
            damage.add(|| format!("__unwind_info: {reason}"));
            None
        }
    });
    let address_of = |name| file.section("__TEXT", name).map(|section| section.address.0);
    let section = eh_frame.map(|bytes| FrameSection {
        kind: SectionKind::EhFrame,
        bytes,
        address: address_of("__eh_frame").unwrap_or_default(),
        text: address_of("__text"),
        got: None,
    });
    let starts = function_starts(file);
    let functions = functions(&entries.unwrap_or_default(), &starts, &code);
    UnwindParts { code, functions, sections: section.into_iter().collect() }
}

/// Where functions begin, in ascending order: from the file's list, or from its symbols if it has no list.
fn function_starts<S: ByteSource>(file: &MachO<S>) -> Vec<RelativeAddress> {
    match file.function_starts() {
        Ok(starts) if !starts.is_empty() => starts,
        _ => {
            let table = file.symbol_table().map(|table| table.symbols);
            let bytes = table.and_then(|table| file.source().read_range(table.offset.0, table.size).ok());
            let mut starts: Vec<_> = defined_symbols(&bytes.unwrap_or_default())
                .filter_map(|address| file.relative(address))
                .collect();
            starts.sort_unstable();
            starts.dedup();
            starts
        }
    }
}

/// The addresses of a symbol table's entries (`nlist_64`) that are defined in sections, and are not debug
/// information.
fn defined_symbols(bytes: &[u8]) -> impl Iterator<Item = Svma> {
    const ENTRY: usize = 16;
    /// `N_STAB`, `N_TYPE`, and the value `N_SECT` of the latter.
    const DEBUG: u8 = 0xe0;
    const TYPE: u8 = 0x0e;
    const IN_SECTION: u8 = 0x0e;
    bytes.chunks_exact(ENTRY).filter_map(|entry| {
        let kind = *entry.get(4)?;
        let value = entry.get(8..)?.first_chunk()?;
        (kind & DEBUG == 0 && kind & TYPE == IN_SECTION).then_some(Svma(u64::from_le_bytes(*value)))
    })
}

/// The sections with code, by address, as far as the file has bytes for them.
fn code_ranges<S: ByteSource>(file: &MachO<S>) -> Vec<CodeRange> {
    let len = file.source().len();
    let range = |section: &nyquist_object::macho::MachOSection| {
        let start = file.relative(section.address)?.0;
        let offset = section.offset.filter(|_| section.is_code())?;
        let size = section.size.min(len.checked_sub(offset.0)?);
        let end = start.checked_add(u32::try_from(size).ok()?)?;
        (start < end).then_some(CodeRange { range: start..end, offset })
    };
    let mut ranges: Vec<_> = file.sections().iter().filter_map(range).collect();
    ranges.sort_by_key(|code| code.range.start);
    ranges
}

/// The functions that entries describe. Linkers make one entry for adjacent functions with the same encoding.
/// Such entries are split where functions begin.
fn functions(
    entries: &[(Range<u32>, u32)],
    starts: &[RelativeAddress],
    code: &[CodeRange],
) -> Vec<FunctionRange> {
    let mut functions = Vec::new();
    for (range, encoding) in entries {
        let Some(section) = code.iter().find(|code| code.range.contains(&range.start)) else { continue };
        let end = range.end.min(section.range.end);
        let first = starts.partition_point(|start| start.0 <= range.start);
        let inside = starts.iter().skip(first).map(|start| start.0).take_while(|start| *start < end);
        let mut start = range.start;
        for next in inside.chain([end]).filter(|_| *encoding != 0) {
            functions.push(FunctionRange {
                range: start..next,
                description: FunctionDescription::Compact(*encoding),
            });
            start = next;
        }
    }
    functions
}
