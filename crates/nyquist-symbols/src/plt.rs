//! Names for the entries of the procedure linkage table, which have no symbols. Each entry jumps through a
//! slot of the global offset table, and the relocation of that slot names the function.

use crate::named_range::NamedRange;
use crate::section_contents::{SectionContents as Contents, SharedSource};
use nyquist_object::elf::{Architecture, ElfSection};
use nyquist_object::{Cursor, Elf};
use rustc_hash::FxHashMap;

/// The sections with such entries.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];

/// The size of an entry on both architectures. Entries of `.plt.got` may be shorter.
const ENTRY_SIZE: u64 = 16;

/// The entries of a file, by address within each section.
pub(crate) fn plt_entries(elf: &Elf<SharedSource>) -> Vec<NamedRange> {
    let Some(names) = DynamicSymbolNames::open(elf) else { return Vec::new() };
    let slots = GotSlots::read(elf);
    let sections = SECTIONS.iter().filter_map(|name| elf.section(name)).filter(|section| section.has_bytes());
    sections.flat_map(|section| slots.entries(elf, section, &names).unwrap_or_default()).collect()
}

/// The slots of the global offset table that relocations fill.
#[derive(Default)]
struct GotSlots {
    /// A slot's address and the number of the function's symbol.
    symbols: FxHashMap<u64, u64>,
    /// The slots in the order of `.rela.plt`, which is the numbering of lazily bound entries.
    lazy: Vec<u64>,
}

impl GotSlots {
    fn read(elf: &Elf<SharedSource>) -> Self {
        let mut slots = Self::default();
        // Lazily bound entries have their own relocations. Those of `.plt.got` are among all others.
        slots.read_relocations(elf, ".rela.plt", true);
        if elf.section(".plt.got").is_some() {
            slots.read_relocations(elf, ".rela.dyn", false);
        }
        slots
    }

    fn read_relocations(&mut self, elf: &Elf<SharedSource>, name: &str, is_lazy: bool) {
        let Ok(Some(relocations)) = elf.section_data(name) else { return };
        for relocation in relocations.as_chunks::<24>().0 {
            let mut cursor = Cursor::new(relocation, 0, elf.is_little_endian());
            let (Some(slot), Some(info)) = (cursor.u64(), cursor.u64()) else { return };
            if is_lazy {
                self.lazy.push(slot);
            }
            if info >> 32 != 0 {
                self.symbols.entry(slot).or_insert(info >> 32);
            }
        }
    }

    fn entries(
        &self,
        elf: &Elf<SharedSource>,
        section: &ElfSection,
        names: &DynamicSymbolNames,
    ) -> Option<Vec<NamedRange>> {
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
            let symbol = slot.and_then(|slot| self.symbols.get(&slot));
            if let Some(name) = symbol.and_then(|&symbol| names.name(symbol)) {
                let end = address.saturating_add(ENTRY_SIZE);
                if let Some(last) = found.last_mut() {
                    last.end = last.end.min(address);
                }
                found.push(NamedRange { start: address, end, name });
            }
        }
        Some(found)
    }

    /// The slot that an entry jumps through: `[endbr64] [bnd] jmp [rip + N]`, or `endbr64; push NUMBER` if
    /// the jump is in `.plt.sec`.
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

/// The slot that an entry loads from: `adrp x16, PAGE; ldr x17, [x16, #N]` (AAPCS64, "Procedure linkage
/// table").
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

/// The dynamic symbols, of which only the names are needed.
struct DynamicSymbolNames {
    symbols: Contents,
    strings: Contents,
    little_endian: bool,
}

impl DynamicSymbolNames {
    fn open(elf: &Elf<SharedSource>) -> Option<Self> {
        let symbols = elf.section(".dynsym").filter(|_| elf.is_64_bit())?;
        let strings = elf.sections().get(symbols.link as usize)?;
        let open = |section: &ElfSection| Contents::open(elf, &section.name).ok();
        Some(Self { symbols: open(symbols)?, strings: open(strings)?, little_endian: elf.is_little_endian() })
    }

    /// The name of the symbol with this number.
    fn name(&self, number: u64) -> Option<Vec<u8>> {
        let symbol = self.symbols.window(number.checked_mul(24)?, 4)?;
        let name = Cursor::new(&symbol, 0, self.little_endian).u32()?;
        let name = self.strings.string(name.into())?;
        (!name.is_empty()).then(|| name.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_each_kind_of_entry() {
        let slots = GotSlots { symbols: FxHashMap::default(), lazy: vec![0x4000, 0x4008] };
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
