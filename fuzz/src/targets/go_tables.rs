//! A Go program's function tables with bytes changed anywhere in them, and in what leads to inlined calls.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use arbitrary::{Result, Unstructured};
use nyquist_test_support::go_image::{Place, TEXT, Version, build};
use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;

/// A made-up program, then changes: a position, a length, the bytes.
fn image(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let version = *input.choose(&[Version::Two, Version::Sixteen, Version::Eighteen, Version::Twenty])?;
    let place = *input.choose(&[Place::Section, Place::Segment, Place::Relocated])?;
    let mut image = build(version, place);
    while input.len() > 3 {
        let at = usize::from(input.arbitrary::<u16>()?) % image.len();
        let len = usize::from(input.arbitrary::<u8>()?).min(image.len() - at).min(input.len());
        image[at..at + len].copy_from_slice(input.bytes(len)?);
    }
    Ok(image)
}

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(image) = image(&mut Unstructured::new(bytes)) else { return };
    let Ok(module) = ModuleSymbols::from_image(image) else { return };
    let addresses: Vec<_> = (0..0x300).step_by(0x10).map(|at| RelativeAddress(TEXT + at)).collect();
    let infos = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(infos.len(), addresses.len());
    assert_eq!(module.lookup(addresses[5]), infos[5], "one address alone and among others");
    let _ = module.disassemble(addresses[5], 64, true);
    let _ = module.named_source("/src/main.go", addresses[5]);
}
