//! The one entry for people and CI: `cargo xtask test | bench | fuzz | mutate | dist`.

mod arm;
mod bench;
mod builds;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod created_files;
mod debian_rust;
mod dist;
mod docs;
mod documented;
#[cfg(test)]
mod documents;
mod fuzz;
mod holds;
#[cfg(test)]
mod identifiers;
mod instructions;
#[cfg(test)]
mod linux_sentences;
mod live;
mod macos;
mod many_functions;
mod mutate;
mod oracle;
mod packages;
mod packaging;
mod paths;
mod platforms;
mod rotation;
#[cfg(test)]
mod sources;
mod steps;
mod sys;
mod tally;
mod test;
mod workloads;
mod workspace;
mod zig;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's tasks.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every check: format, lints, tests, docs, packages, live recordings, the documentation's commands
    Test(test::Options),
    /// Builds the small programs that the tests profile, and prints where they are
    Workloads,
    /// Measures nyquist beside its peers
    Bench(bench::Options),
    /// Runs one fuzz target or all of them: for a short time on any compiler, or with cargo-fuzz
    Fuzz(fuzz::Options),
    /// Gives damaged files to the real program, and checks how it ends
    Mutate(mutate::Options),
    /// Makes the archives and packages of a release, and checks them
    Dist(dist::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Workloads => workloads::build_all().map(|folder| {
            println!("{}", folder.display());
            true
        }),
        Task::Bench(options) => bench::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Mutate(options) => mutate::run(&options),
        Task::Dist(options) => dist::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
