//! Symbols and debug info of arbitrary Mach-O files: an image, and the object file that it may say that it was linked
//! from.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::{env, fs};

use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    // The length of the image comes first, then the image, then the object file.
    let Some((len, rest)) = bytes.split_first_chunk() else { return };
    let Some((image, object)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else { return };
    let _ = fs::write(env::temp_dir().join("nyquist-fuzz-macho.o"), object);
    let Ok(module) = ModuleSymbols::from_image(image.to_vec()) else { return };
    let addresses: Vec<_> = (0..0x3000).step_by(0x25).chain([u32::MAX]).map(RelativeAddress).collect();
    let infos = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(infos.len(), addresses.len());
    assert_eq!(module.lookup(addresses[20]), infos[20], "one address alone and among others");
    let _ = module.disassemble(addresses[20], 64, true);
    let _ = module.named_source("/source.c", addresses[20]);
}
