//! Nanoseconds a frame of nyquist-unwind and framehop over the stacks of a recording.
//!
//! Samples are shuffled. *Cold*: each stack is walked once a pass, so that its memory comes from RAM where the
//! recording is larger than the caches. *Warm*: stacks are walked in batches of 64, each batch twice, and the
//! second walk is timed. Rule caches go on from walk to walk in both.

use anyhow::{Context, Result};
use nyquist_unwind::rule_table::RuleTable;
use nyquist_unwind::{Module, Unwinder};
use nyquist_unwind_bench::peer::PeerCache;
use nyquist_unwind_bench::recording::{Recording, Sample};
use nyquist_unwind_bench::shuffle::shuffle;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const BATCH: usize = 64;
const PASSES: usize = 9;

/// A way to walk one sample; returns the number of frames.
trait Walker {
    fn walk(&mut self, recording: &Recording, sample: &Sample) -> usize;
}

struct Ours(Unwinder);

impl Walker for Ours {
    fn walk(&mut self, recording: &Recording, sample: &Sample) -> usize {
        let mut frames = 0;
        let process = &recording.processes[sample.process];
        let stack = recording.stack(sample);
        self.0.walk(&process.space, &sample.registers, &stack, &mut |frame| {
            black_box(frame);
            frames += 1;
        });
        frames
    }
}

struct Theirs(PeerCache);

impl Walker for Theirs {
    fn walk(&mut self, recording: &Recording, sample: &Sample) -> usize {
        let mut frames = 0;
        let stack = recording.stack(sample);
        let process = &recording.processes[sample.process];
        process.peer.walk(&mut self.0, &sample.registers, &stack, &mut |frame| {
            black_box(frame);
            frames += 1;
        });
        frames
    }
}

/// Nanoseconds a frame.
fn per_frame(time: Duration, frames: usize) -> f64 {
    time.as_nanos() as f64 / frames as f64
}

fn cold(walker: &mut impl Walker, recording: &Recording, samples: &[&Sample]) -> f64 {
    let begun = Instant::now();
    let frames = samples.iter().map(|sample| walker.walk(recording, sample)).sum();
    per_frame(begun.elapsed(), frames)
}

fn warm(walker: &mut impl Walker, recording: &Recording, samples: &[&Sample]) -> f64 {
    let (mut time, mut frames) = (Duration::ZERO, 0);
    for batch in samples.chunks(BATCH) {
        for sample in batch {
            walker.walk(recording, sample);
        }
        let begun = Instant::now();
        frames += batch.iter().map(|sample| walker.walk(recording, sample)).sum::<usize>();
        time += begun.elapsed();
    }
    per_frame(time, frames)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians of both over alternating passes, so that a busy moment of the machine meets both.
fn compare(name: &str, mut run: impl FnMut(usize) -> (f64, f64)) {
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..PASSES).map(&mut run).unzip();
    let (ours, theirs) = (median(ours), median(theirs));
    println!("{name:<28} {ours:8.1} ns a frame, framehop {theirs:8.1}, ratio {:5.2}", theirs / ours);
}

/// As many threads as given, each walking everything by itself.
fn parallel(recording: &Recording, samples: &[&Sample], threads: usize) -> f64 {
    let times: Vec<f64> = std::thread::scope(|scope| {
        let run = || warm(&mut Ours(Unwinder::new()), recording, samples);
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    times.iter().sum::<f64>() / times.len() as f64
}

/// The median over the batches, while a further module is loaded before every one.
fn loading(recording: &mut Recording, order: &[usize]) -> (f64, f64) {
    let (mut ours, mut theirs) = (Ours(Unwinder::new()), Theirs(PeerCache::default()));
    let extra = recording.modules.values().flatten().next().cloned();
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for (number, batch) in order.chunks(BATCH).enumerate() {
        if let Some(extra) = &extra {
            let start = 0x1000_0000 + number as u64 * 0x10_0000;
            for process in &mut recording.processes {
                process.add(start, 0x1_0000, extra);
            }
        }
        let samples: Vec<&Sample> = batch.iter().map(|&index| &recording.samples[index]).collect();
        // The memory is made warm by walkers of its own, so that only rules have to be found anew.
        warm(&mut Ours(Unwinder::new()), recording, &samples);
        our_times.push(cold(&mut ours, recording, &samples));
        their_times.push(cold(&mut theirs, recording, &samples));
    }
    (median(our_times), median(their_times))
}

fn compile_times(recording: &Recording) {
    let mut modules: Vec<_> =
        recording.modules.iter().filter_map(|(path, m)| Some((path, m.as_ref()?))).collect();
    let rows = |module: &Module| module.tables().map(|table| table.rows().len()).sum::<usize>();
    modules.sort_by_key(|(_, loaded)| std::cmp::Reverse(rows(&loaded.module)));
    for (path, loaded) in modules.into_iter().take(4) {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let Ok(elf) = nyquist_object::Elf::open(bytes) else { continue };
        let time = || {
            let begun = Instant::now();
            black_box(Module::from_elf(&elf).ok().map(|module| module.tables().count()));
            begun.elapsed().as_secs_f64() * 1e3
        };
        let time = median((0..PASSES).map(|_| time()).collect());
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        println!(
            "compile {name:<40} {time:6.1} ms, {} rows, tables {:.2} MB, all {:.2} MB",
            rows(&loaded.module),
            loaded.module.tables().map(RuleTable::size).sum::<usize>() as f64 / 1e6,
            loaded.module.size() as f64 / 1e6,
        );
    }
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: speed PERF_DATA")?;
    let mut recording = Recording::open(Path::new(&path))?;
    let mut order: Vec<usize> = (0..recording.samples.len()).collect();
    shuffle(&mut order);
    let samples: Vec<&Sample> = order.iter().map(|&index| &recording.samples[index]).collect();

    let (mut ours, mut theirs) = (Ours(Unwinder::new()), Theirs(PeerCache::default()));
    compare("warm", |_| (warm(&mut ours, &recording, &samples), warm(&mut theirs, &recording, &samples)));
    compare("cold", |_| (cold(&mut ours, &recording, &samples), cold(&mut theirs, &recording, &samples)));
    for threads in [1, 2] {
        let times = (0..PASSES).map(|_| parallel(&recording, &samples, threads)).collect();
        println!("warm, {threads} at once             {:8.1} ns a frame", median(times));
    }
    compile_times(&recording);
    let (ours, theirs) = loading(&mut recording, &order);
    println!(
        "loading before each batch    {ours:8.1} ns a frame, framehop {theirs:8.1}, ratio {:5.2}",
        theirs / ours
    );
    Ok(())
}
