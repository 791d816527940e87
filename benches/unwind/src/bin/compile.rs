//! Compiles the tables of the files given, over and over, for a profiler to look at.

use anyhow::Context;
use nyquist_object::Elf;
use nyquist_unwind::Module;
use nyquist_unwind_bench::cpu;
use std::hint::black_box;
use std::time::Instant;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let passes: usize = arguments.next().context("usage: compile PASSES FILE...")?.parse()?;
    for path in arguments {
        let elf = Elf::open(std::fs::read(&path)?)?;
        let mut times = Vec::new();
        let used = cpu::used();
        for _ in 0..passes {
            let begun = Instant::now();
            black_box(Module::from_elf(&elf)?);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let cpu = (cpu::used() - used).as_secs_f64() * 1e3 / passes as f64;
        println!("{path}: {cpu:.1} ms on the processor; median {:.1} ms, best {:.1} ms", times[passes / 2], times[0]);
    }
    Ok(())
}
