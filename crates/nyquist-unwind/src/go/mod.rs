//! Modules of Go programs for 64-bit x86 and ARM. The linker's table of functions, `.gopclntab`, states for
//! each instruction how far the stack pointer is below its value at the function's first one. Every program
//! has this table, even without symbols and debug information. It then is the only unwind information. The
//! table also states which functions are outermost ones.

mod aarch64;
mod functions;
mod x86_64;

use crate::Damage;
use crate::code::AllCode;
use crate::compile::{FunctionDescription, FunctionRange};
use crate::rule::Rule;
use functions::{GoFunctionEntry, GoFunctions, RuleRows};
use nyquist_object::{Architecture, ByteSource, Elf, MachO, ObjectError};
use std::ops::Range;

/// The table's sections in ELF files: of programs at fixed addresses, and of those that are relocated.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// The segments of the table's section in Mach-O files.
const MACHO_SEGMENTS: [&str; 2] = ["__TEXT", "__DATA_CONST"];
const MACHO_SECTION: &str = "__gopclntab";

/// How an architecture uses the table.
struct TableUse {
    /// The instruction size of which all instructions are multiples, in bytes.
    quantum: u8,
    /// The rows of a function, by its entry and its instructions.
    rows: fn(&GoFunctionEntry<'_>, &[u8]) -> RuleRows,
}

impl TableUse {
    fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86_64 => Some(Self { quantum: 1, rows: x86_64::rows }),
            Architecture::Aarch64 => Some(Self { quantum: 4, rows: aarch64::rows }),
            Architecture::X86 | Architecture::Other(_) => None,
        }
    }
}

/// The code that a table can describe.
struct TableCode<'a> {
    machine: TableUse,
    /// The SVMA that relative addresses count from.
    base: u64,
    /// The SVMA of the section that code is in.
    text: u64,
    /// Relative addresses of all code.
    code: &'a [Range<u32>],
    bytes: &'a AllCode,
}

/// Whether a file contains Go code.
pub(crate) fn has_functions<S: ByteSource>(elf: &Elf<S>) -> bool {
    SECTIONS.iter().any(|name| elf.section(name).is_some())
}

/// The functions of a file by address, each with its rows. Empty if the file has no table, or one of an
/// unknown form. Then its code is walked like all other code.
pub(crate) fn read<S: ByteSource>(
    elf: &Elf<S>,
    code: &[Range<u32>],
    bytes: &AllCode,
    damage: &mut Damage,
) -> Vec<FunctionRange> {
    let data = SECTIONS.iter().find_map(|name| elf.section_data(name).transpose());
    let Some(table) = readable(data, damage) else { return Vec::new() };
    let Some(machine) = TableUse::of(elf.architecture()) else { return Vec::new() };
    let text = elf.section(".text").map_or(0, |section| section.address.0);
    TableCode { machine, base: elf.image_base().0, text, code, bytes }.functions(&table)
}

/// As [`read`], of a Mach-O file.
pub(crate) fn read_macho<S: ByteSource>(
    file: &MachO<S>,
    code: &[Range<u32>],
    bytes: &AllCode,
    damage: &mut Damage,
) -> Vec<FunctionRange> {
    let data = MACHO_SEGMENTS.iter().find_map(|name| file.section_data(name, MACHO_SECTION).transpose());
    let Some(table) = readable(data, damage) else { return Vec::new() };
    let Some(machine) = TableUse::of(file.architecture()) else { return Vec::new() };
    let text = file.section("__TEXT", "__text").map_or(0, |section| section.address.0);
    TableCode { machine, base: file.image_base().0, text, code, bytes }.functions(&table)
}

/// The functions of Go's table, and the other functions that are before or after all of these. Both inputs
/// and the result are in order.
pub(crate) fn with_others(go: Vec<FunctionRange>, mut others: Vec<FunctionRange>) -> Vec<FunctionRange> {
    let Some((first, last)) = go.first().zip(go.last()) else { return others };
    let range = first.range.start..last.range.end;
    others.retain(|other| other.range.end <= range.start || range.end <= other.range.start);
    let place = others.partition_point(|other| other.range.end <= range.start);
    others.splice(place..place, go);
    others
}

/// The table. If it exists but cannot be read, that is damage.
fn readable(data: Option<Result<Vec<u8>, ObjectError>>, damage: &mut Damage) -> Option<Vec<u8>> {
    match data? {
        Ok(table) => Some(table),
        Err(error) => {
            damage.add(|| format!(".gopclntab is unreadable: {error}"));
            None
        }
    }
}

impl TableCode<'_> {
    fn functions(&self, table: &[u8]) -> Vec<FunctionRange> {
        let Some(functions) = GoFunctions::new(table, self.machine.quantum) else { return Vec::new() };
        // With other linkers than Go's own, only the loader knows where the code is.
        let text = if functions.text == 0 { self.text } else { functions.text };
        let text = text.checked_sub(self.base).and_then(|text| u32::try_from(text).ok());
        let Some(text) = text else { return Vec::new() };
        let mut found: Vec<FunctionRange> = Vec::new();
        for entry in functions.entries() {
            let range = text.saturating_add(entry.range.start)..text.saturating_add(entry.range.end);
            let is_apart = found.last().is_none_or(|last| last.range.end <= range.start);
            let is_code = self.code.iter().any(|code| code.start <= range.start && range.end <= code.end);
            if range.start >= range.end || !is_apart || !is_code {
                continue;
            }
            let rows = (self.machine.rows)(&entry, self.bytes.of(&range).unwrap_or_default());
            let is_signal_return = rows == [(0, Rule::SIGNAL_FRAME)];
            let mut function = FunctionRange { range, description: FunctionDescription::Rows(rows) };
            if is_signal_return {
                take_byte_before(&mut function, found.last_mut());
            }
            found.push(function);
        }
        found
    }
}

/// Signal handlers return to the first instruction of this function, so its lookup address is the byte before
/// it.
fn take_byte_before(function: &mut FunctionRange, before: Option<&mut FunctionRange>) {
    let Some(start) = function.range.start.checked_sub(1) else { return };
    if let Some(before) = before.filter(|before| before.range.end > start) {
        if before.range.start >= start {
            return;
        }
        before.range.end = start;
    }
    function.range.start = start;
}
