//! `nyquist`, the command: arguments, messages, exit statuses and wiring.

mod annotate;
mod args;
mod browser;
mod cargo;
mod control;
mod failure;
mod functions;
mod import;
mod input;
mod load;
mod machine;
mod number;
mod output;
mod page;
mod perf_data;
mod perf_tee;
mod printer;
mod record;
mod report;
mod save;
mod scale;
mod selection;
mod serve;
mod summary;
mod symbolicate;
mod text;

use args::{Cli, Command};
use clap::{CommandFactory as _, Parser as _};
use failure::Failure;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            printer::print_failure(&failure);
            ExitCode::from(failure.status)
        }
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Record(args) => record::run(&args),
        Command::Load(args) => load::run(&args).map(|()| 0),
        Command::Import(args) => import::run(&args),
        Command::Report(args) => report::run(&args).map(|()| 0),
        Command::Cargo { words } => cargo::run(words),
        Command::Annotate(args) => annotate::run(&args).map(|()| 0),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "nyquist", &mut io::stdout());
            Ok(0)
        }
    }
}
