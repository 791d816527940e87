//! Holds the stacks of recordings against the call chains that came with them, frame by frame: those that another
//! unwinder made in the program itself, as the workload `samples_itself` does. Fails on any difference. A chain of one
//! frame is one that the other could not begin: stubs of linkers have no unwind information. There, the root must be
//! reached.

use anyhow::{Context, Result, ensure};
use nyquist_object::Avma;
use nyquist_unwind::{FrameAddress, Unwinder, WalkEnd};
use nyquist_unwind_bench::recording::Recording;
use std::path::Path;

/// Words of a chain from here on say whose the following addresses are.
const CONTEXT: u64 = -4095_i64 as u64;

fn check(path: &str) -> Result<usize> {
    let recording = Recording::open(Path::new(path))?;
    let mut unwinder = Unwinder::new();
    let (mut frames, mut beyond, mut differences) = (0, 0, 0);
    for (number, sample) in recording.samples.iter().enumerate() {
        let (process, stack) = (&recording.processes[sample.process], recording.stack(sample));
        let mut walked = Vec::new();
        let end = unwinder.walk(&process.space, &sample.registers, &stack, &mut |frame: FrameAddress| {
            walked.push(frame.address());
        });
        let chain = sample.chain.iter().filter(|word| **word < CONTEXT);
        let chain: Vec<_> = chain.map(|address| Avma(*address)).collect();
        frames += chain.len();
        let goes_beyond = chain.len() == 1 && walked.len() > 2 && walked.first() == chain.first();
        beyond += usize::from(goes_beyond);
        if (walked != chain && !goes_beyond) || end != WalkEnd::Root {
            differences += 1;
            if differences < 5 {
                println!("  sample {number}: {walked:x?}, {end:?}\n      instead of {chain:x?}");
            }
        }
    }
    let samples = recording.samples.len();
    println!("{path}: {samples} samples, {frames} frames, {beyond} beyond, {differences} differences");
    ensure!(frames > 0, "{path} has no call chains");
    Ok(differences)
}

fn main() -> Result<()> {
    let mut differences = 0;
    for path in std::env::args().skip(1) {
        differences += check(&path).with_context(|| path.clone())?;
    }
    ensure!(differences == 0, "{differences} stacks differ from their call chains");
    Ok(())
}
