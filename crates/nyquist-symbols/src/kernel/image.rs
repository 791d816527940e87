//! The kernel's image on the disk (`vmlinux`) with its debug info, and the difference between its addresses
//! and those of the loaded kernel.

use crate::section_contents::SharedSource;
use crate::{AddressInfo, Finder, ModuleRequest, ModuleSymbols, SymbolFiles};
use nyquist_object::{Avma, BuildId, Cursor, Elf, ModuleId, RelativeAddress, Svma};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The places of images with debug info: those of Debian's and Ubuntu's packages, those of Fedora's, and in a
/// kernel's build folder.
const PLACES: [&str; 6] = [
    "/usr/lib/debug/boot/vmlinux-{}",
    "/usr/lib/debug/lib/modules/{}/vmlinux",
    "/usr/lib/debug/usr/lib/modules/{}/vmlinux",
    "/boot/vmlinux-{}",
    "/lib/modules/{}/vmlinux",
    "/lib/modules/{}/build/vmlinux",
];

/// The symbols at the start of the kernel's code.
const NAMES: [&[u8]; 2] = [b"_stext", b"_text"];

/// The addresses of these symbols, in memory or in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnchorSymbols([Option<u64>; NAMES.len()]);

impl AnchorSymbols {
    /// Notes a symbol if it is one of those.
    pub(crate) fn note(&mut self, name: &[u8], address: u64) {
        if let Some(index) = NAMES.iter().position(|anchor| *anchor == name) {
            self.0[index].get_or_insert(address);
        }
    }

    /// The anchors of a file's symbol table.
    fn of_file(elf: &Elf<SharedSource>) -> Option<Self> {
        let symbols = elf.section(".symtab")?;
        let strings = elf.data(elf.sections().get(symbols.link as usize)?).ok()?;
        let mut anchors = Self::default();
        for symbol in elf.data(symbols).ok()?.as_chunks::<24>().0 {
            let mut cursor = Cursor::new(symbol, 0, elf.is_little_endian());
            let name = cursor.u32()? as usize;
            let named = |anchor: &&&[u8]| {
                let rest = strings.get(name..).and_then(|rest| rest.strip_prefix(**anchor));
                rest.is_some_and(|rest| rest.first() == Some(&0))
            };
            if let Some(anchor) = NAMES.iter().find(named) {
                cursor.skip(4)?;
                anchors.note(anchor, cursor.u64()?);
            }
        }
        Some(anchors)
    }

    /// The difference between these addresses and those of a file.
    fn slide(self, file: Self) -> Option<u64> {
        let both = self.0.into_iter().zip(file.0).find_map(|(loaded, provided)| loaded.zip(provided));
        both.map(|(loaded, provided)| loaded.wrapping_sub(provided))
    }
}

/// The image of the running kernel.
#[derive(Debug)]
pub(crate) struct KernelImage {
    symbols: ModuleSymbols,
    found: SymbolFiles,
    /// The offset from the file's addresses to those of the loaded kernel, which are random (KASLR).
    slide: u64,
}

impl KernelImage {
    /// Finds the image with this build id, and with debug info, of a kernel that is loaded at the addresses
    /// in `loaded`.
    pub(crate) fn find(finder: &Finder, release: &str, id: &BuildId, loaded: AnchorSymbols) -> Option<Self> {
        let mut places: Vec<_> =
            PLACES.iter().map(|place| PathBuf::from(place.replace("{}", release))).collect();
        let path = places.pop()?;
        let id = Some(ModuleId::BuildId(id.clone()));
        let request = ModuleRequest { path, id, alternatives: places, ..ModuleRequest::default() };
        let finder = finder.clone().offline();
        let found = finder.find(&request);
        let file = found.debug_file.as_ref().or(found.binary.as_ref())?;
        let elf = Elf::open(file.source.clone() as SharedSource).ok()?;
        let slide = loaded.slide(AnchorSymbols::of_file(&elf)?)?;
        let symbols = finder.open(&found).ok().filter(ModuleSymbols::has_debug_info)?;
        Some(Self { symbols, found, slide })
    }

    pub(crate) fn symbol_files(&self) -> &SymbolFiles {
        &self.found
    }

    /// The image's answers for addresses in memory, in their order.
    pub(crate) fn symbolicate(&self, addresses: &[Avma], threads: NonZeroUsize) -> Vec<AddressInfo> {
        // An address that is not in the image is replaced by one that has no answer.
        let relative = |address: &Avma| {
            let provided = Svma(address.0.wrapping_sub(self.slide));
            RelativeAddress::from_svma(provided, self.symbols.image_base())
                .unwrap_or(RelativeAddress(u32::MAX))
        };
        let requested: Vec<_> = addresses.iter().map(relative).collect();
        self.symbols.symbolicate(&requested, threads, &AtomicBool::new(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slide_is_of_the_first_symbol_both_know() {
        let mut loaded = AnchorSymbols::default();
        let mut provided = AnchorSymbols::default();
        loaded.note(b"_text", 0xffff_ffff_9120_0000);
        loaded.note(b"_end", 7);
        assert_eq!(loaded.slide(provided), None);
        provided.note(b"_stext", 0xffff_ffff_8100_1000);
        provided.note(b"_text", 0xffff_ffff_8100_0000);
        assert_eq!(loaded.slide(provided), Some(0x1020_0000));
        loaded.note(b"_stext", 0xffff_ffff_9120_1000);
        assert_eq!(loaded.slide(provided), Some(0x1020_0000));
        assert_eq!(provided.slide(loaded), Some(0x1020_0000_u64.wrapping_neg()));
    }
}
