//! Modules of Go programs for 64-bit x86: the linker's table of functions, `.gopclntab`, says how far each instruction's stack pointer is below
//! its function's return address. It is there in every program, also in one whose symbols and debug information were left out,
//! which has no other unwind information; and it knows which functions are the outermost ones.

mod functions;
mod rows;

use crate::Damage;
use crate::code::AllCode;
use crate::compile::{Description, Function};
use functions::Functions;
use nyquist_object::{ByteSource, Elf};
use std::ops::Range;

/// The table's sections: of programs at fixed addresses, and of those that are relocated.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// Whether a file was made of Go.
pub(crate) fn has_functions<S: ByteSource>(elf: &Elf<S>) -> bool {
    SECTIONS.iter().any(|name| elf.section(name).is_some())
}

/// The functions of a file by address, each with its rows. None where there is no table, or one of a form that is not known: then it is walked
/// as all other code.
pub(crate) fn read<S: ByteSource>(
    elf: &Elf<S>,
    code: &[Range<u32>],
    bytes: &AllCode,
    damage: &mut Damage,
) -> Vec<Function> {
    let data = SECTIONS.iter().find_map(|name| elf.section_data(name).transpose());
    let table = match data {
        None => return Vec::new(),
        Some(Ok(table)) => table,
        Some(Err(error)) => {
            damage.add(|| format!(".gopclntab is unreadable: {error}"));
            return Vec::new();
        }
    };
    let Some(functions) = Functions::new(&table) else { return Vec::new() };
    // The linker of another compiler than Go's own leaves it to the loader to say where the code is.
    let text = match functions.text {
        0 => elf.section(".text").map_or(0, |section| section.address.0),
        text => text,
    };
    let Some(text) = text.checked_sub(elf.image_base().0).and_then(|text| u32::try_from(text).ok()) else {
        return Vec::new();
    };
    let mut found: Vec<Function> = Vec::new();
    for entry in functions.entries() {
        let range = text.saturating_add(entry.range.start)..text.saturating_add(entry.range.end);
        let is_apart = found.last().is_none_or(|last| last.range.end <= range.start);
        let is_code = code.iter().any(|code| code.start <= range.start && range.end <= code.end);
        if range.start >= range.end || !is_apart || !is_code {
            continue;
        }
        let instructions = bytes.of(&range).unwrap_or_default();
        let rows = rows::rows(&entry, instructions);
        let mut function = Function { range, description: Description::Rows(rows) };
        if rows::is_signal_return(instructions) {
            take_byte_before(&mut function, found.last_mut());
        }
        found.push(function);
    }
    found
}

/// The kernel has a signal handler return to the first instruction of this function, so that its lookup address is the byte before
/// it.
fn take_byte_before(function: &mut Function, before: Option<&mut Function>) {
    let Some(start) = function.range.start.checked_sub(1) else { return };
    if let Some(before) = before.filter(|before| before.range.end > start) {
        if before.range.start >= start {
            return;
        }
        before.range.end = start;
    }
    function.range.start = start;
}
