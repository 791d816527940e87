//! `nyquist`, the command: arguments, messages, exit statuses and wiring.

mod annotate;
mod args;
mod browser;
mod cache;
mod cargo;
mod control;
mod diff;
mod doctor;
mod export;
mod export_perf_data;
mod failure;
mod finder;
mod flamegraph;
mod folders;
mod functions;
mod import;
mod input;
mod launch_advice;
mod load;
mod machine;
mod markers;
mod memory;
mod number;
mod output;
mod page;
mod perf_data;
mod perf_tee;
mod printer;
mod profile_file;
mod query;
mod record;
mod report;
mod save;
mod scale;
mod script;
mod selection;
mod serve;
mod setup;
mod summary;
mod symbolicate;
mod sys;
mod text;
mod top;
mod unnamed;
mod watch;

use args::{Cli, Command};
use clap::CommandFactory as _;
use failure::Failure;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    match command_line().and_then(|cli| run(cli.command)) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            printer::print_failure(&failure);
            ExitCode::from(failure.status)
        }
    }
}

/// What is asked for, in the language of the name that this program was called by.
fn command_line() -> Result<Cli, Failure> {
    if std::env::args_os().next().is_some_and(|name| args::samply::is_samply(&name)) {
        return args::samply::parse(std::env::args_os());
    }
    args::parse()
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Record(args) => record::run(&args),
        Command::Load(args) => load::run(&args).map(|()| 0),
        Command::Import(args) => import::run(&args),
        Command::Report(args) => report::run(&args).map(|()| 0),
        Command::Cargo { words } => cargo::run(words),
        Command::Flamegraph(args) => flamegraph::run(&args).map(|()| 0),
        Command::Annotate(args) => annotate::run(&args).map(|()| 0),
        Command::Export(args) => export::run(&args).map(|()| 0),
        Command::Diff(args) => diff::run(&args).map(|()| 0),
        Command::Script(args) => script::run(&args).map(|()| 0),
        Command::Top(args) => top::run(&args),
        Command::Query(args) => query::run(&args).map(|()| 0),
        Command::Doctor(args) => doctor::run(&args),
        Command::Setup(args) => setup::run(args),
        Command::Cache(args) => cache::run(&args).map(|()| 0),
        Command::Guide => query::guide().map(|()| 0),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "nyquist", &mut io::stdout());
            Ok(0)
        }
    }
}
