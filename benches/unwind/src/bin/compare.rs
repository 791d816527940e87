//! Compares the stacks of a recording as nyquist-unwind and framehop walk them.

use anyhow::{Context, Result};
use framehop::x86_64::CacheX86_64;
use nyquist_unwind::{Unwinder, WalkEnd};
use nyquist_unwind_bench::recording::Recording;
use std::collections::BTreeMap;
use std::path::Path;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: compare PERF_DATA")?;
    let recording = Recording::open(Path::new(&path))?;
    let mut unwinder = Unwinder::new();
    let mut cache = CacheX86_64::new();
    let (mut ends, mut frames, mut same) = (BTreeMap::<String, usize>::new(), 0, 0);
    for sample in &recording.samples {
        let process = &recording.processes[sample.process];
        let stack = recording.stack(sample);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let end = unwinder.walk(&process.space, &sample.registers(), &stack, &mut |frame| {
            ours.push(frame.address().0);
        });
        let root = process.peer.walk(&mut cache, &sample.registers, &stack, &mut |frame| theirs.push(frame));
        frames += ours.len();
        let name = match end {
            WalkEnd::Root => "root".to_owned(),
            WalkEnd::Truncated(reason) => reason.to_string(),
        };
        *ends.entry(format!("{name}, framehop {root}")).or_default() += 1;
        if ours == theirs && root == (end == WalkEnd::Root) {
            same += 1;
        } else {
            let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            println!(
                "{name} {} / {root} {}: differ at {at} {:x?} {:x?}",
                ours.len(),
                theirs.len(),
                &ours[at.saturating_sub(1)..ours.len().min(at + 3)],
                &theirs[at.saturating_sub(1)..theirs.len().min(at + 3)]
            );
        }
    }
    println!("{} samples, {frames} frames, {same} the same: {ends:#?}", recording.samples.len());
    Ok(())
}
