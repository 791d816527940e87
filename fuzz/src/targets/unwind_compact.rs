//! Compiling arbitrary `__unwind_info`, `__eh_frame` and code of either architecture, and walking a stack by them.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use crate::{macho_image, walk};
use nyquist_object::MachO;
use nyquist_unwind::Module;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = compile_and_walk(&mut Unstructured::new(bytes));
}

fn compile_and_walk(input: &mut Unstructured<'_>) -> Result<()> {
    let is_arm = input.arbitrary()?;
    let part = |input: &mut Unstructured<'_>| {
        let len = usize::from(input.arbitrary::<u16>()?).min(input.len());
        input.bytes(len).map(<[u8]>::to_vec)
    };
    let (walk_bytes, code, info, frames) = (part(input)?, part(input)?, part(input)?, part(input)?);
    let image =
        macho_image::build(is_arm, &[("__text", &code), ("__unwind_info", &info), ("__eh_frame", &frames)]);
    let file = MachO::open(image.as_slice()).expect("a well-formed file");
    if let Ok(module) = Module::from_macho(&file) {
        let size = image.len() as u64;
        walk::walk(file.architecture(), &Arc::new(module), size, &mut Unstructured::new(&walk_bytes))?;
    }
    Ok(())
}
