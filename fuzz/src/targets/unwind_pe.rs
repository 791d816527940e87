//! Compiling the unwind information of an arbitrary PE image, and walking a stack by it.

use std::sync::Arc;

use arbitrary::Unstructured;
use nyquist_object::{Pe, RelativeAddress};
use nyquist_unwind::Module;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(pe) = Pe::open(bytes) else { return };
    let Ok(module) = Module::from_pe(&pe) else { return };
    for address in [0, 0x1000, 0x1234, u32::MAX] {
        let _ = module.rule(RelativeAddress(address));
    }
    let tail = &bytes[bytes.len().saturating_sub(512)..];
    let _ = crate::walk::walk(
        pe.architecture(),
        &Arc::new(module),
        0x10_0000,
        &mut Unstructured::new(tail),
    );
}
