//! Compiling the unwind information of an arbitrary ELF file, at once and on the way, and walking a stack by it.

use std::sync::Arc;

use arbitrary::Unstructured;
use nyquist_object::{Elf, RelativeAddress};
use nyquist_unwind::Module;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(elf) = Elf::open(bytes) else { return };
    let Ok(module) = Module::from_elf(&elf) else { return };
    module.tables().for_each(drop);
    for address in [0, 0x1000, 0x1234, u32::MAX] {
        let _ = module.rule(RelativeAddress(address));
    }
    let on_the_way = Elf::open(bytes.to_vec()).map(Module::from_shared_elf);
    let tail = &bytes[bytes.len().saturating_sub(512)..];
    for module in [Some(module), on_the_way.ok().and_then(Result::ok)].into_iter().flatten() {
        let _ = crate::walk::walk(
            elf.architecture(),
            &Arc::new(module),
            0x10_0000,
            &mut Unstructured::new(tail),
        );
    }
}
