//! Compares the stacks of a recording as nyquist-unwind and framehop walk them. Fails on a difference that is
//! not on the list of known ones.

use anyhow::{Context, Result, ensure};
use nyquist_unwind::{Unwinder, WalkEnd};
use nyquist_unwind_bench::known;
use nyquist_unwind_bench::peer::PeerCache;
use nyquist_unwind_bench::recording::{Recording, Sample};
use std::collections::BTreeMap;
use std::path::Path;

/// Both walks of a stack.
struct Pair {
    ours: Vec<u64>,
    end: WalkEnd,
    theirs: Vec<u64>,
    their_root: bool,
}

fn walk(recording: &Recording, sample: &Sample, unwinder: &mut Unwinder, cache: &mut PeerCache) -> Pair {
    let process = &recording.processes[sample.process];
    let stack = recording.stack(sample);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let end = unwinder.walk(&process.space, &sample.registers, &stack, &mut |frame| {
        ours.push(frame.address().0);
    });
    let their_root = process.peer.walk(cache, &sample.registers, &stack, &mut |frame| theirs.push(frame));
    Pair { ours, end, theirs, their_root }
}

impl Pair {
    fn is_same(&self) -> bool {
        self.ours == self.theirs && self.their_root == matches!(self.end, WalkEnd::Root | WalkEnd::Bottom)
    }

    /// How they differ: which of them goes on where the other ends, or else that they differ at a frame.
    fn class(&self) -> String {
        let same = self.ours.iter().zip(&self.theirs).take_while(|(a, b)| a == b).count();
        let (ours_ends, theirs_ends) = (same == self.ours.len(), same == self.theirs.len());
        let end = match self.end {
            WalkEnd::Root | WalkEnd::Bottom => "root".to_owned(),
            WalkEnd::Truncated(reason) => format!("truncated, {reason}"),
        };
        let theirs = if self.their_root { "root" } else { "truncated" };
        match (ours_ends, theirs_ends) {
            (true, true) => format!("same frames; {end}; framehop {theirs}"),
            (true, false) => format!("framehop goes on; {end}; framehop {theirs}"),
            (false, true) => format!("framehop ends earlier; {end}; framehop {theirs}"),
            (false, false) => format!("the walks part; {end}; framehop {theirs}"),
        }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().context("usage: compare PERF_DATA [-v]")?;
    let recording = Recording::open(Path::new(path))?;
    ensure!(!recording.samples.is_empty(), "no samples in {path}");
    let (mut unwinder, mut cache) = (Unwinder::new(), PeerCache::default());
    let (mut classes, mut ends) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    let mut frames = 0;
    for (number, sample) in recording.samples.iter().enumerate() {
        let pair = walk(&recording, sample, &mut unwinder, &mut cache);
        frames += pair.ours.len();
        *ends.entry(format!("{:?}", pair.end)).or_default() += 1;
        if !pair.is_same() {
            *classes.entry(pair.class()).or_default() += 1;
            if arguments.len() > 1 {
                println!("sample {number}: {}\n  {:x?}\n  {:x?}", pair.class(), pair.ours, pair.theirs);
            }
        }
    }
    let samples = recording.samples.len();
    println!("{samples} stacks, {frames} frames: {ends:?}; {} differ", classes.values().sum::<usize>());
    for (class, count) in classes {
        known::check(&class, count, samples)?;
    }
    Ok(())
}
