//! Makes a large profile and times every kind of question to it.

mod files;
mod questions;

use std::time::{Duration, Instant};

use nyquist_analysis::{Index, Selection, View};
use nyquist_profile::Profile;

use nyquist_test_support::generator::{Shape, generate};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, path] = &*arguments
        && mode == files::LOAD
    {
        return files::load(path.as_ref());
    }
    let number = |place: usize, usual: usize| {
        arguments.get(place).map_or(usual, |text| {
            text.parse().expect("arguments are SAMPLES STACKS ROUNDS ONLY FOLDER [keep]")
        })
    };
    let shape = Shape {
        samples: number(0, 20_000_000),
        threads: 200,
        functions: 100_000,
        stacks: number(1, 2_000_000),
        seed: 1,
    };
    let rounds = number(2, 9);
    let only = arguments.get(3).map_or("", String::as_str);

    let (profile, took) = timed(|| generate(&shape));
    describe(&profile);
    println!("made in {:.1} s; memory {} MB\n", took.as_secs_f64(), memory_mb());

    if let Some(folder) = arguments.get(4) {
        files::save_and_load(&profile, folder.as_ref(), arguments.get(5).is_some());
    }

    let cpu_before = cpu_time();
    let (index, took) = timed(|| Index::new(&profile));
    let index_ms = milliseconds(took);
    let index_cpu_ms = milliseconds(cpu_time() - cpu_before);
    let indexed_mb = memory_mb();
    let (_, took) = timed(|| View::new(&index, &Selection::default()).functions().functions.len());
    println!(
        "index {index_ms} ms ({index_cpu_ms} ms of CPU time), the first question (all functions) {} ms; memory {indexed_mb} MB\n",
        milliseconds(took)
    );

    println!("| question | median ms | least | greatest | CPU ms | rows |");
    println!("|---|---:|---:|---:|---:|---:|");
    for question in questions::all().iter().filter(|question| question.name.contains(only)) {
        let (mut times, mut cpu_times) = (Vec::new(), Vec::new());
        let mut rows = 0;
        for round in 0..rounds {
            let cpu_before = cpu_time();
            let (found, took) = timed(|| (question.ask)(&index, round));
            cpu_times.push(cpu_time() - cpu_before);
            times.push(took);
            rows = rows.max(found);
        }
        times.sort();
        cpu_times.sort();
        let (least, median, greatest) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        println!(
            "| {} | {} | {} | {} | {} | {rows} |",
            question.name,
            milliseconds(median),
            milliseconds(least),
            milliseconds(greatest),
            milliseconds(cpu_times[cpu_times.len() / 2])
        );
    }
    println!("\nmemory {} MB, at most {} MB", memory_mb(), status_mb("VmHWM:"));
}

fn describe(profile: &Profile) {
    let samples: usize = profile.threads().iter().map(|thread| thread.samples.len()).sum();
    let mut depth = vec![0_u32; profile.stacks().len()];
    for (index, stack) in profile.stacks().iter().enumerate() {
        depth[index] = stack.prefix.map_or(0, |prefix| depth[prefix.index()]) + 1;
    }
    let stacks =
        profile.threads().iter().flat_map(|thread| thread.samples.iter().filter_map(|sample| sample.stack));
    let mut depths: Vec<u32> = stacks.map(|stack| depth[stack.index()]).collect();
    depths.sort_unstable();
    let at = |share: f64| depths[((depths.len() - 1) as f64 * share) as usize];
    println!(
        "{samples} samples, {} threads, {} functions, {} stacks, depth {} at the median and {} at 99 %",
        profile.threads().len(),
        profile.funcs().len(),
        profile.stacks().len(),
        at(0.5),
        at(0.99)
    );
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// The CPU time of all threads so far: on a busy machine a better measure than the time that passed.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn memory_mb() -> u64 {
    status_mb("VmRSS:")
}

/// A line of `/proc/self/status`, in MB; 0 where there is none.
fn status_mb(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}
