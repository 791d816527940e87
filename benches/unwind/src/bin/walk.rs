//! Walks all stacks of a recording a number of times, for callgrind to count the instructions of.

use anyhow::{Context, Result};
use nyquist_unwind::Unwinder;
use nyquist_unwind_bench::recording::Recording;
use std::hint::black_box;
use std::path::Path;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: walk PASSES PERF_DATA";
    let passes: usize = arguments.next().context(usage)?.parse()?;
    let recording = Recording::open(Path::new(&arguments.next().context(usage)?))?;
    let mut unwinder = Unwinder::new();
    let mut frames = 0_usize;
    for sample in (0..passes).flat_map(|_| &recording.samples) {
        let (process, stack) = (&recording.processes[sample.process], recording.stack(sample));
        unwinder.walk(&process.space, &sample.registers, &stack, &mut |frame| {
            black_box(frame);
            frames += 1;
        });
    }
    println!("{frames} frames");
    Ok(())
}
