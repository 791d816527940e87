//! `cargo xtask bench`: measures nyquist beside its peers, and prints the tables of `docs/benchmarks`.

mod agent;
mod alloc;
mod analysis;
mod arm;
mod attach;
mod builds;
mod cargo;
mod converting;
mod cost;
mod counters;
mod engines;
mod events;
mod holds;
mod install;
mod measure;
mod overhead;
mod perf_data;
mod program;
mod record;
mod recorder;
mod reports;
mod roots;
mod rows;
mod samples;
mod spool;
mod spread;
mod stat;
mod texts;
mod trace;
mod tracing;
mod unwind;
mod viewer;
mod waits;

use anyhow::Result;

use crate::live::harness::paranoid;

/// The measurement.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    subject: Benchmark,
}

#[derive(clap::Subcommand)]
enum Benchmark {
    /// CPU time and memory of the agent on an idle and on a busy machine, beside perf record
    Agent(agent::Options),
    /// How long SQL engines take for the recipes over a folder of profiles
    Engines(engines::Options),
    /// Slowdown, CPU time of the recorder, time to save and to attach, samples per CPU time, complete stacks
    Record(record::Options),
    /// What a span of `tracing` costs the profiled program, with layers of several profilers
    Tracing(tracing::Options),
    /// What `cargo nyquist` takes beyond `cargo run` and the recording
    Cargo(cargo::Options),
    /// The recorder's CPU time with counters and without
    Counters(counters::Options),
    /// The recorder's CPU time with a spool and without, bytes of the spool for each sample, and the time to recover
    Spool(spool::Options),
    /// Reading perf.data, beside samply, perf script and perf report
    PerfData(perf_data::Options),
    /// How many samples a second the recorder's converter takes
    Converting(converting::Options),
    /// What a tracepoint, a function call and a page fault cost a program while they are recorded
    Events(events::Options),
    /// What an allocation and its free cost a program while they are recorded, beside heaptrack
    Alloc(alloc::Options),
    /// How long each kind of query of a profile of 20 million samples takes
    Analysis(analysis::Options),
    /// What `nyquist stat` takes beyond the command that it counts
    Stat(stat::Options),
    /// Reading a large Chrome trace, beside speedscope
    Trace(trace::Options),
    /// Reading perf script text, folded stacks and V8's profiles, beside inferno's collapsers
    Texts(texts::Options),
    /// What a context switch costs a program while its waits are recorded
    Waits(waits::Options),
    /// CPU time of programs that enter the kernel often, with their recorder: root, plain users, attached
    Overhead(overhead::Options),
    /// Instructions for unwinding a warm frame, and for compiling a large library's tables
    Unwind(unwind::Options),
    /// How long `cargo install` takes, and the size of the program, beside samply
    Install(install::Options),
    /// Instructions of the recorder for a sample, beside perf, in a virtual machine with a 64-bit ARM processor
    Arm(arm::Options),
    /// The built-in viewer in a browser: time until it is drawn, time of interactions, memory of the tab,
    /// transferred bytes
    Viewer(viewer::Options),
}

/// Measures. Returns whether that was possible.
pub(crate) fn run(options: &Options) -> Result<bool> {
    paranoid::restore_when_interrupted()?;
    match &options.subject {
        Benchmark::Agent(options) => agent::run(options).map(|()| true),
        Benchmark::Engines(options) => engines::run(options).map(|()| true),
        Benchmark::Record(options) => record::run(options).map(|()| true),
        Benchmark::Cargo(options) => cargo::run(options).map(|()| true),
        Benchmark::Counters(options) => counters::run(options).map(|()| true),
        Benchmark::Spool(options) => spool::run(options).map(|()| true),
        Benchmark::Alloc(options) => alloc::run(options).map(|()| true),
        Benchmark::Events(options) => events::run(options).map(|()| true),
        Benchmark::PerfData(options) => perf_data::run(options).map(|()| true),
        Benchmark::Converting(options) => converting::run(options).map(|()| true),
        Benchmark::Analysis(options) => analysis::run(options),
        Benchmark::Overhead(options) => overhead::run(options).map(|()| true),
        Benchmark::Waits(options) => waits::run(options).map(|()| true),
        Benchmark::Stat(options) => stat::run(options).map(|()| true),
        Benchmark::Texts(options) => texts::run(options).map(|()| true),
        Benchmark::Trace(options) => trace::run(options).map(|()| true),
        Benchmark::Tracing(options) => tracing::run(options).map(|()| true),
        Benchmark::Unwind(options) => unwind::run(options).map(|()| true),
        Benchmark::Install(options) => install::run(options).map(|()| true),
        Benchmark::Arm(options) => arm::run(options),
        Benchmark::Viewer(options) => viewer::run(options).map(|()| true),
    }
}
