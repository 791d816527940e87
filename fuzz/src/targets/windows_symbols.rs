//! PDBs, Breakpad symbol files and PE images of arbitrary bytes: every address that hostile ones are likely to have.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(module) = ModuleSymbols::from_image(bytes.to_vec()) else { return };
    let addresses: Vec<_> = (0..0x3000).step_by(5).chain([u32::MAX]).map(RelativeAddress).collect();
    let answers = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(answers.len(), addresses.len());
    let _ = module.named_source("C:\\a.cc", RelativeAddress(0x1000));
    let _ = module.disassemble(RelativeAddress(0x1000), 64, true);
}
