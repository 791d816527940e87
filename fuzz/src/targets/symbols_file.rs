//! Symbols, debug info and code of an arbitrary ELF file.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(module) = ModuleSymbols::from_image(bytes.to_vec()) else { return };
    let addresses: Vec<_> = (0..0x3000).step_by(0x61).chain([u32::MAX]).map(RelativeAddress).collect();
    let infos = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(infos.len(), addresses.len());
    let first = addresses[10];
    assert_eq!(module.lookup(first), infos[10], "one address alone and among others");
    let _ = module.disassemble(first, 64, true);
    let _ = module.named_source("/source.c", first);
}
