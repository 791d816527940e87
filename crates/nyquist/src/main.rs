//! `nyquist`, the command: arguments, messages, exit statuses and wiring.
// Output goes through `page` and `printer`, which escape text from outside (`clippy.toml`).
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(target_os = "linux")]
mod agent;
mod annotate;
mod args;
mod browser;
mod cache;
mod cargo;
mod commands;
mod completions;
mod control;
#[cfg(target_os = "linux")]
mod ctl;
mod delegates;
mod diff;
#[cfg(target_os = "linux")]
mod doctor;
mod dropped;
mod export;
mod export_perf_data;
mod failure;
mod file_hash;
mod finder;
mod flame_screen;
mod flamegraph;
#[cfg(target_os = "linux")]
mod flight;
mod folders;
mod form;
mod functions;
mod generated_code;
mod identity;
mod import;
mod input;
#[cfg(target_os = "linux")]
mod list;
mod live_page;
mod load;
mod man;
mod memory;
mod number;
#[cfg(all(test, target_os = "linux"))]
mod option_reference;
mod output;
mod own_code;
mod own_screen;
mod page;
mod printer;
mod query;
mod ratio;
mod record;
#[cfg(target_os = "linux")]
mod recover;
mod report;
mod save;
mod scale;
mod script;
mod selection;
mod serve;
mod server_config;
mod setup;
mod shell;
mod source_paths;
mod spool;
#[cfg(target_os = "linux")]
mod stat;
mod symbolicate;
mod system;
mod text;
#[cfg(target_os = "linux")]
mod top;
mod unnamed;
mod user_files;
#[cfg(target_os = "linux")]
mod utc_date;
mod verbosity;
mod watch;

use args::{Cli, Command};
use completions::Program;
use failure::Failure;
use std::process::ExitCode;
use system::signals::{on_own_stack, outlive_file_size_limit};

/// The stack of the worker thread, independent of the stack limit of the program.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    if let Some(status) = delegates::work() {
        return status;
    }
    delegates::set_up();
    outlive_file_size_limit();
    let worked = on_own_stack(STACK_BYTES, || command_line().and_then(|cli| run(cli.command)));
    delegates::end();
    match worked.unwrap_or_else(|error| Err(Failure::because("no thread can be started", &error))) {
        Ok(status) => system::exit_code(status),
        Err(failure) => {
            printer::print_failure(&failure);
            ExitCode::from(failure.status)
        }
    }
}

/// The arguments, in the syntax of the name by which this program was called.
fn command_line() -> Result<Cli, Failure> {
    if std::env::args_os().next().is_some_and(|name| args::samply::is_samply(&name)) {
        return args::samply::parse(std::env::args_os());
    }
    args::parse()
}

/// Runs a subcommand. Returns the exit status, which can be that of a recorded command.
fn run(command: Command) -> Result<u32, Failure> {
    let of_agent = matches!(command, Command::Agent(_)).then_some(memory::OF_AGENT);
    if let Some(symbols) = command.symbols() {
        symbols.limit_modules(of_agent);
    }
    match command {
        Command::Record(args) => record::run(&args),
        Command::Recover(args) => commands::recover(&args).map(u32::from),
        Command::Load(args) => load::run(&args).map(|()| 0),
        Command::Import(args) => import::run(&args).map(u32::from),
        Command::Report(args) => report::run(&args).map(u32::from),
        Command::Cargo { argv } => cargo::run(argv).map(u32::from),
        Command::Flamegraph(args) => flamegraph::run(&args).map(|()| 0),
        Command::Annotate(args) => annotate::run(&args).map(|()| 0),
        Command::Export(args) => export::run(&args).map(|()| 0),
        Command::Diff(args) => diff::run(&args).map(|()| 0),
        Command::Script(args) => script::run(&args).map(|()| 0),
        Command::Agent(args) => commands::agent(&args).map(u32::from),
        Command::Top(args) => commands::top(&args).map(u32::from),
        Command::Stat(args) => commands::stat(&args).map(u32::from),
        Command::Ctl(args) => commands::ctl(&args).map(|()| 0),
        Command::List(args) => commands::list(&args).map(|()| 0),
        Command::Query(args) => query::run(&args).map(|()| 0),
        Command::Doctor(args) => commands::doctor(&args).map(u32::from),
        Command::Setup(args) if args.user => user_files::install(args.dry_run).map(|()| 0),
        Command::Setup(args) => setup::run(args).map(u32::from),
        Command::Cache(args) => cache::run(&args).map(|()| 0),
        Command::Guide => query::guide().map(|()| 0),
        Command::Completions { shell } => {
            page::print_script(&completions::script(shell, Program::Nyquist)).map(|()| 0)
        }
        Command::Man { folder } => man::write_pages(&folder).map(|()| 0),
    }
}
