//! Compiling the unwind information of an arbitrary Mach-O file, and walking a stack by it.

use std::sync::Arc;

use arbitrary::Unstructured;
use crate::walk;
use nyquist_object::{MachO, RelativeAddress};
use nyquist_unwind::Module;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(file) = MachO::open(bytes) else { return };
    let Ok(module) = Module::from_macho(&file) else { return };
    for address in [0, 0x1000, 0x1234, u32::MAX] {
        let _ = module.rule(RelativeAddress(address));
    }
    let tail = &bytes[bytes.len().saturating_sub(512)..];
    let _ = walk::walk(file.architecture(), &Arc::new(module), 0x10_0000, &mut Unstructured::new(tail));
}
