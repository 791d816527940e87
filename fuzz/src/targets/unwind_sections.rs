//! Compiling arbitrary `.eh_frame`, `.debug_frame` and `.gopclntab` sections for either architecture, and walking a
//! stack by them.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use crate::{elf_image, walk};
use nyquist_object::Elf;
use nyquist_unwind::Module;

const EM_AARCH64: u16 = 183;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = compile_and_walk(&mut Unstructured::new(bytes));
}

fn compile_and_walk(input: &mut Unstructured<'_>) -> Result<()> {
    let is_arm = input.arbitrary()?;
    let walk_len = usize::from(input.arbitrary::<u8>()?).min(input.len());
    let walk_bytes = input.bytes(walk_len)?;
    let mut image = elf_image::build(&elf_image::decode(input)?);
    if is_arm {
        image[18..20].copy_from_slice(&EM_AARCH64.to_le_bytes());
    }
    let elf = Elf::open(image.as_slice()).expect("a well-formed file");
    if let Ok(module) = Module::from_elf(&elf) {
        module.tables().for_each(drop);
        walk::walk(
            elf.architecture(),
            &Arc::new(module),
            image.len() as u64,
            &mut Unstructured::new(walk_bytes),
        )?;
    }
    Ok(())
}
