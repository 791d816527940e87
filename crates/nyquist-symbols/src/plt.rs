//! Names for the entries of the procedure linkage table, which no symbol table names: each jumps through a slot
//! of the global offset table, and the relocation of that slot names the function.

use crate::cursor::Cursor;
use crate::section::Source;
use crate::symbol_table::NamedRange;
use nyquist_object::Elf;
use nyquist_object::elf::{Architecture, Section};
use rustc_hash::FxHashMap;

/// The sections that hold such entries.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];

/// The size of an entry on both architectures; those of `.plt.got` may be shorter.
const ENTRY_SIZE: u64 = 16;

/// The entries of a file, by address within each section.
pub(crate) fn plt_entries(elf: &Elf<Source>) -> Vec<NamedRange> {
    let Some(slots) = Slots::read(elf) else { return Vec::new() };
    let sections = SECTIONS.iter().filter_map(|name| elf.section(name)).filter(|section| section.has_bytes());
    sections.flat_map(|section| slots.entries(elf, section).unwrap_or_default()).collect()
}

/// The slots of the global offset table that relocations fill.
struct Slots {
    /// A slot's address and the function's name.
    names: FxHashMap<u64, Vec<u8>>,
    /// The slots in the order of `.rela.plt`, by which lazily bound entries are numbered.
    lazy: Vec<u64>,
}

impl Slots {
    fn read(elf: &Elf<Source>) -> Option<Self> {
        let dynsym = elf.section(".dynsym").filter(|_| elf.is_64_bit())?;
        let strings = elf.data(elf.sections().get(dynsym.link as usize)?).ok()?;
        let symbols = elf.data(dynsym).ok()?;
        let mut slots = Self { names: FxHashMap::default(), lazy: Vec::new() };
        for name in [".rela.plt", ".rela.dyn"] {
            let Ok(Some(relocations)) = elf.section_data(name) else { continue };
            for relocation in relocations.as_chunks::<24>().0 {
                let mut cursor = Cursor::new(relocation, 0, elf.is_little_endian());
                let (slot, info) = (cursor.u64()?, cursor.u64()?);
                if name == ".rela.plt" {
                    slots.lazy.push(slot);
                }
                let function = symbol_name(&symbols, &strings, info >> 32, elf.is_little_endian());
                if let Some(function) = function {
                    slots.names.entry(slot).or_insert(function);
                }
            }
        }
        Some(slots)
    }

    fn entries(&self, elf: &Elf<Source>, section: &Section) -> Option<Vec<NamedRange>> {
        let code = elf.data(section).ok()?;
        let step = match elf.architecture() {
            Architecture::X86_64 => 8,
            Architecture::Aarch64 => 4,
            _ => return None,
        };
        let mut found: Vec<NamedRange> = Vec::new();
        for at in (0..code.len()).step_by(step) {
            let address = section.address.0.checked_add(at as u64)?;
            let slot = match elf.architecture() {
                Architecture::X86_64 => self.slot_x86_64(&code[at..], address),
                _ => slot_aarch64(&code[at..], address),
            };
            if let Some(name) = slot.and_then(|slot| self.names.get(&slot)) {
                let end = address.saturating_add(ENTRY_SIZE);
                if let Some(last) = found.last_mut() {
                    last.end = last.end.min(address);
                }
                found.push(NamedRange { start: address, end, name: name.clone() });
            }
        }
        Some(found)
    }

    /// The slot that an entry jumps through: `[endbr64] [bnd] jmp [rip + N]`, or `endbr64; push NUMBER` where the
    /// jump is in `.plt.sec`.
    fn slot_x86_64(&self, code: &[u8], address: u64) -> Option<u64> {
        let after_endbr = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]);
        if let Some([0x68, number @ ..]) = after_endbr {
            let number = u32::from_le_bytes(*number.first_chunk()?);
            return self.lazy.get(number as usize).copied();
        }
        let jump = after_endbr.unwrap_or(code);
        let jump = jump.strip_prefix(&[0xf2]).unwrap_or(jump);
        let distance = i32::from_le_bytes(*jump.strip_prefix(&[0xff, 0x25])?.first_chunk()?);
        let next = address.checked_add((code.len() - jump.len() + 6) as u64)?;
        Some(next.wrapping_add_signed(distance.into()))
    }
}

/// The slot that an entry loads from: `adrp x16, PAGE; ldr x17, [x16, #N]` (AAPCS64, "Procedure linkage table").
fn slot_aarch64(code: &[u8], address: u64) -> Option<u64> {
    let (adrp, rest) = code.split_first_chunk()?;
    let (adrp, ldr) = (u32::from_le_bytes(*adrp), u32::from_le_bytes(*rest.first_chunk()?));
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | (adrp >> 29 & 3);
    let pages = i64::from((pages << 11) as i32 >> 11);
    let page = (address & !0xfff).wrapping_add_signed(pages << 12);
    Some(page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
}

/// The name of a symbol of a 64-bit table by its number; 0 is no symbol.
fn symbol_name(symbols: &[u8], strings: &[u8], number: u64, little_endian: bool) -> Option<Vec<u8>> {
    let at = usize::try_from(number).ok().filter(|&number| number > 0)?.checked_mul(24)?;
    let name = Cursor::new(symbols, at, little_endian).u32()?;
    let name = Cursor::new(strings, name as usize, little_endian).string()?;
    (!name.is_empty()).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_each_kind_of_entry() {
        let slots = Slots { names: FxHashMap::default(), lazy: vec![0x4000, 0x4008] };
        let check =
            |code: &[u8], expected| assert_eq!(slots.slot_x86_64(code, 0x1000), expected, "{code:x?}");
        check(&[0xff, 0x25, 0xfa, 0x2f, 0, 0, 0x68, 0, 0, 0, 0], Some(0x4000));
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x2f, 0, 0], Some(0x4000));
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0], Some(0x4008));
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0x68, 2, 0, 0, 0], None);
        check(&[0xff, 0x25, 0xfa], None);
        check(&[], None);
    }

    #[test]
    fn the_slot_of_an_aarch64_entry() {
        // adrp x16, 0x11000; ldr x17, [x16, #24]; at 0x1020.
        let code = [0x9000_0090_u32.to_le_bytes(), 0xf940_0e11_u32.to_le_bytes()].concat();
        assert_eq!(slot_aarch64(&code, 0x1020), Some(0x1_1018));
        assert_eq!(slot_aarch64(&code[..7], 0x1020), None);
    }
}
