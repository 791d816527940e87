//! Walks made-up stacks, compiles a made-up module, or maps code, so many times: what `cargo xtask test instructions`
//! lets callgrind count.

use anyhow::{Result, bail, ensure};
use nyquist_object::Avma;
use nyquist_unwind::{AddressSpace, Unwinder, WalkEnd};
use nyquist_unwind_bench::made;
use std::hint::black_box;

/// Half as many addresses as the unwinder's cache has places, so that hits and some misses both count.
const STACKS: u32 = 32;
const FRAMES: u32 = 64;
const FUNCTIONS: u32 = 4096;

fn walk(passes: usize) -> Result<usize> {
    let space = made::space(made::module(FUNCTIONS, made::eh_frame(FUNCTIONS)), FUNCTIONS);
    let stacks = made::stacks(STACKS, FRAMES, FUNCTIONS);
    let mut unwinder = Unwinder::new();
    let mut frames = 0;
    for stack in (0..passes).flat_map(|_| &stacks) {
        let begun = frames;
        let end = unwinder.walk(&space, stack.registers(), &stack.memory(), &mut |frame| {
            black_box(frame);
            frames += 1;
        });
        ensure!(
            frames - begun == FRAMES as usize && end == WalkEnd::Root,
            "{} frames: {end:?}",
            frames - begun
        );
    }
    Ok(frames)
}

fn compile(passes: usize) -> Result<usize> {
    let (eh_frame, mut rows) = (made::eh_frame(FUNCTIONS), 0);
    for _ in 0..passes {
        let module = made::module(FUNCTIONS, eh_frame.clone());
        rows += black_box(&module).tables().map(|table| table.rows().len()).sum::<usize>();
        ensure!(module.damage().count == 0, "{:?}", module.damage());
    }
    Ok(rows)
}

/// Maps code at falling addresses, each of which would move all later ones in a list.
fn map(passes: usize) -> Result<usize> {
    const MAPPINGS: u64 = 20_000;
    for _ in 0..passes {
        let mut space = AddressSpace::new();
        (0..MAPPINGS).rev().for_each(|at| space.map_code(Avma(at << 13), 1 << 12));
        black_box(&space);
    }
    Ok(passes * MAPPINGS as usize)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, passes] = arguments.as_slice() else { bail!("usage: count walk|compile|map PASSES") };
    let passes = passes.parse()?;
    let done = match what.as_str() {
        "walk" => walk(passes)?,
        "compile" => compile(passes)?,
        "map" => map(passes)?,
        _ => bail!("there is no {what} to count"),
    };
    println!("{done}");
    Ok(())
}
