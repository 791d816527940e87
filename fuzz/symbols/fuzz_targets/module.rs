//! An ELF image of any bytes: every question that can be asked of a module. Seeds are small programs with debug
//! info, of each compiler and DWARF version.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

fuzz_target!(|image: &[u8]| {
    let Ok(symbols) = ModuleSymbols::from_image(image.to_vec()) else { return };
    let addresses: Vec<_> = (0..0x4000).step_by(64).map(RelativeAddress).collect();
    let answers = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(answers.len(), addresses.len());
    assert_eq!(answers[3], symbols.lookup(addresses[3]));
    let _ = symbols.disassemble(addresses[20], 64, true);
    let _ = symbols.names_source("/a.c", addresses[20]);
});
