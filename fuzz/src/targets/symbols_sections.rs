//! Arbitrary DWARF sections and symbol tables in a well-formed ELF file.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use arbitrary::Unstructured;
use crate::elf_image;
use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(sections) = elf_image::decode(&mut Unstructured::new(bytes)) else { return };
    let module = ModuleSymbols::from_image(elf_image::build(&sections)).expect("a well-formed file");
    let addresses: Vec<_> = (0..0x400).step_by(0x11).chain([u32::MAX]).map(RelativeAddress).collect();
    let infos = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(infos.len(), addresses.len());
    assert_eq!(module.lookup(addresses[10]), infos[10], "one address alone and among others");
    let _ = module.disassemble(addresses[10], 64, true);
    let _ = module.named_source("/source.c", addresses[10]);
}
