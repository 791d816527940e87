//! Any bytes as an ELF file: compiling its tables does no harm.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_object::{Elf, RelativeAddress};
use nyquist_unwind::Module;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(module) = Elf::open(bytes).map_err(drop).and_then(|elf| Module::from_elf(&elf).map_err(drop)) {
        for address in (0..0x4000).step_by(7) {
            module.rule(RelativeAddress(address));
        }
    }
});
