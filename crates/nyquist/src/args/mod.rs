//! The command line: commands and options. Parsing only checks each value.

mod agent;
mod annotate;
mod cache;
pub(crate) mod cargo;
mod ctl;
mod dashed_value;
mod diff;
mod doctor;
mod events;
mod export;
mod filter;
mod flamegraph;
mod flight;
mod import;
mod list;
mod load;
mod other_tools;
mod presentation;
mod quantity;
mod query;
mod read;
mod record;
mod recording;
mod recover;
mod report;
pub(crate) mod samply;
mod script;
mod server;
mod setup;
mod spool;
mod stacks;
mod stat;
mod symbols;
mod top;
mod trigger;
mod typed_options;
mod usage_error;

pub(crate) use agent::AgentArgs;
pub(crate) use annotate::AnnotateArgs;
pub(crate) use cache::{CacheAction, CacheArgs};
#[cfg(target_os = "linux")]
pub(crate) use ctl::CtlAction;
pub(crate) use ctl::CtlArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use events::EventArgs;
pub(crate) use export::{ExportArgs, ExportFormat};
pub(crate) use filter::FilterArgs;
pub(crate) use flamegraph::{ColorBy, FlamegraphArgs, PictureArgs};
pub(crate) use import::ImportArgs;
pub(crate) use list::ListArgs;
pub(crate) use load::LoadArgs;
pub(crate) use presentation::PresentationArgs;
pub(crate) use quantity::TimeRange;
pub(crate) use query::{QueryArgs, Question};
pub(crate) use read::ReadArgs;
pub(crate) use record::{Backend, RecordArgs, RowArgs, TargetArgs};
pub(crate) use recording::RecordingArgs;
pub(crate) use recover::RecoverArgs;
pub(crate) use report::{ColumnName, FormatArgs, ReportArgs, SortBy, ViewArgs};
pub(crate) use script::ScriptArgs;
pub(crate) use server::{ServerArgs, Ui};
pub(crate) use setup::SetupArgs;
pub(crate) use spool::SpoolArgs;
pub(crate) use stacks::{CallGraph, StackArgs};
pub(crate) use stat::StatArgs;
pub(crate) use symbols::SymbolArgs;
pub(crate) use top::TopArgs;
#[cfg(target_os = "linux")]
pub(crate) use top::TopEvent;
#[cfg(target_os = "linux")]
pub(crate) use trigger::{Condition, Trigger};
pub(crate) use typed_options::TypedReadOptions;
pub(crate) use usage_error::NOT_UNDERSTOOD;

pub(crate) use crate::verbosity::Verbosity;

use crate::failure::Failure;
use crate::system::abilities::{HAS_SETUP, MEASURES};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use std::ffi::OsString;
use usage_error::refused;

/// A sampling CPU profiler: record a program and see where its time goes.
#[derive(Debug, Parser)]
#[command(name = "nyquist", version, propagate_version = true)]
#[command(after_help = "Examples:
  nyquist record ./app --fast          Record a program, save its profile and open it
  nyquist record -p 4711 -d 10         Record a running process for ten seconds
  nyquist top ./app                    Watch it live
  nyquist stat -r 5 ./app              Count its time, switches and faults, over five runs
  nyquist report profile.json.gz       Show where the time went, in the terminal
  nyquist annotate parse               Show the hot lines of a function, of profile.json.gz
  nyquist flamegraph profile.json.gz   Draw it as an SVG
  nyquist load profile.json.gz         Open a saved profile in the Firefox Profiler
  nyquist load perf.data               Open what `perf record` has recorded

`cargo nyquist` builds and records a Rust program.")]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Parses the words behind `nyquist`.
#[cfg(test)]
pub(crate) fn command(argv: &[&str]) -> Result<Command, clap::Error> {
    Cli::try_parse_from(std::iter::once(&"nyquist").chain(argv)).map(|cli| cli.command)
}

/// Parses the command line.
pub(crate) fn parse() -> Result<Cli, Failure> {
    Cli::try_parse().map_err(|error| {
        let argv: Vec<_> = std::env::args_os().skip(1).collect();
        refused(&with_tip(error, &argv), &Cli::command(), &argv)
    })
}

/// Adds a suggestion of what to type instead of the words behind `nyquist`, if there is one.
fn with_tip(mut error: clap::Error, argv: &[OsString]) -> clap::Error {
    let argv: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let argv: Vec<_> = argv.iter().map(AsRef::as_ref).collect();
    if let Some(tip) = record_tip(&error, &argv).or_else(|| file_tip(&error, &argv)) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// The suggestion to add `record`, if the first word is a program.
fn record_tip(error: &clap::Error, argv: &[&str]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_program = argv.first() == Some(&&**word) && error.get(ContextKind::SuggestedSubcommand).is_none();
    is_program.then(|| format!("to record a program, type: nyquist record {word}"))
}

/// The suggestion to name a file without `-i`, which is an option of `perf report`.
fn file_tip(error: &clap::Error, argv: &[&str]) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || !["-i", "--input"].contains(&&**option) {
        return None;
    }
    let (subcommand, rest) = argv.split_first()?;
    let command = Cli::command();
    let place =
        command.find_subcommand(subcommand)?.get_positionals().position(|arg| arg.get_id() == "file")?;
    let at = rest.iter().position(|word| word.starts_with(&**option))?;
    let attached = rest[at][option.len()..].trim_start_matches('=');
    let next = rest.get(at + 1).copied().filter(|word| !word.starts_with('-')).unwrap_or("FILE");
    let file = if attached.is_empty() { next } else { attached };
    Some(match place {
        0 => format!("files are named without '{option}', type: nyquist {subcommand} {file}"),
        _ => format!("files are named without '{option}', at the end"),
    })
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a program (or a running process) and look at its profile
    Record(RecordArgs),
    /// Open a saved profile or a recording (perf.data) in the Firefox Profiler, with a local symbol server
    Load(LoadArgs),
    /// Convert a recording (perf.data) to a profile, save it and open it
    Import(ImportArgs),
    /// Show where the time went, in the terminal or as JSON
    Report(ReportArgs),
    /// Build something with cargo and record it: what `cargo nyquist` runs
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Cargo {
        /// What comes after `cargo nyquist`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<OsString>,
    },
    /// Show the source lines and instructions of a function, and the time that each takes
    Annotate(AnnotateArgs),
    /// Write a profile in another profiler's format: pprof, folded stacks, speedscope, a Chrome trace and others
    Export(ExportArgs),
    /// Draw a flame graph, as an SVG that can be zoomed and searched in a browser
    Flamegraph(FlamegraphArgs),
    /// Compare profiles: what got slower and what faster, and what is noise
    Diff(DiffArgs),
    /// Print one sample after another as text, as `perf script` does
    Script(ScriptArgs),
    /// Watch a program (or a running process) live, in the terminal: its functions, call tree and threads
    #[command(hide = !MEASURES)]
    Top(TopArgs),
    /// Record all the time, and send a profile every 15 seconds to Pyroscope, OpenTelemetry or Parquet files
    #[command(hide = !MEASURES)]
    Agent(Box<AgentArgs>),
    /// Count what happens in a program without sampling it: time, switches, faults, cycles; compare two programs
    #[command(hide = !MEASURES)]
    Stat(Box<StatArgs>),
    /// Control a running recording: start, pause, save, status
    #[command(hide = !MEASURES)]
    Ctl(CtlArgs),
    /// List the events that this machine can count
    #[command(hide = !MEASURES)]
    List(ListArgs),
    /// Answer one question about a profile in few lines, for scripts and agents
    Query(QueryArgs),
    /// Check what the machine, a program or a process lacks for good profiles, and how to fix that
    #[command(hide = !MEASURES)]
    Doctor(DoctorArgs),
    /// Change the machine's settings so that more can be recorded, after asking
    #[command(hide = !HAS_SETUP)]
    Setup(SetupArgs),
    /// List recordings that were not saved because nyquist was killed, and make profiles of them
    #[command(hide = !MEASURES)]
    Recover(RecoverArgs),
    /// Show or remove the caches: names that were looked up, and files that were downloaded or unpacked
    Cache(CacheArgs),
    /// Print a page for language models on how to query a profile
    #[command(after_help = "Examples:
  nyquist guide                        Print the page
  nyquist query profile.json.gz        The first question that it names")]
    Guide,
    /// Print a completion script for a shell
    #[command(after_help = "Examples:
  nyquist completions zsh > ~/.zfunc/_nyquist    For a folder of fpath
  nyquist setup --user                 Install those of bash, zsh and fish, with the man pages")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages of nyquist and its commands into a folder
    #[command(after_help = "Examples:
  nyquist man ~/.local/share/man/man1  Write them where man may find them
  nyquist setup --user                 The same, with completions, and what MANPATH lacks")]
    Man {
        /// The folder, such as ~/.local/share/man/man1; it is created if it is missing
        #[arg(value_name = "DIR")]
        folder: std::path::PathBuf,
    },
}

impl Command {
    /// Where it looks for symbols, and how much memory they may take; `None` of a command that reads none.
    pub(crate) fn symbols(&self) -> Option<&SymbolArgs> {
        match self {
            Self::Record(args) => Some(&args.presentation.symbols),
            Self::Load(args) => Some(&args.presentation.symbols),
            Self::Import(args) => Some(&args.presentation.symbols),
            Self::Report(args) => Some(&args.read.symbols),
            Self::Annotate(args) => Some(&args.read.symbols),
            Self::Export(args) => Some(&args.read.symbols),
            Self::Flamegraph(args) => Some(&args.read.symbols),
            Self::Diff(args) => Some(&args.read.symbols),
            Self::Script(args) => Some(&args.read.symbols),
            Self::Agent(args) => Some(&args.symbols),
            Self::Top(args) => Some(&args.symbols),
            Self::Query(args) => Some(&args.read.symbols),
            Self::Doctor(args) => Some(&args.symbols),
            Self::Recover(args) => Some(&args.symbols),
            Self::Cargo { .. }
            | Self::Setup(_)
            | Self::Stat(_)
            | Self::Ctl(_)
            | Self::List(_)
            | Self::Cache(_)
            | Self::Guide
            | Self::Completions { .. }
            | Self::Man { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_fits_into_80_columns() {
        let mut cli = Cli::command();
        cli.build();
        for command in cli.get_subcommands_mut() {
            let usage = command.render_usage().to_string();
            assert!(usage.lines().all(|line| line.len() <= 80), "{usage}");
        }
    }

    #[test]
    fn two_dashes_reach_cargo_nyquist() {
        let Command::Cargo { argv } = command(&["cargo", "--", "--", "a", "--"]).unwrap() else { panic!() };
        assert_eq!(argv, ["--", "a", "--"]);
    }

    #[test]
    fn cargo_nyquist_shows_its_own_version() {
        let Command::Cargo { argv } = command(&["cargo", "--version"]).unwrap() else { panic!() };
        assert_eq!(argv, ["--version"]);
        let version = cargo::CargoCli::command().render_version();
        assert!(version.starts_with("cargo-nyquist "), "{version}");
    }

    fn usage_error(argv: &[&str]) -> Failure {
        let error = command(argv).unwrap_err();
        let argv: Vec<_> = argv.iter().map(OsString::from).collect();
        refused(&with_tip(error, &argv), &Cli::command(), &argv)
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        let check = |line: &str, expected: &str| {
            let usage_error = usage_error(&line.split_whitespace().collect::<Vec<_>>());
            assert_eq!((&*usage_error.message, usage_error.status), (expected, 2), "{line}");
        };
        check("record -p", "'--pid <PID,...>' needs a value");
        check(
            "record --backend",
            "'--backend <BACKEND>' needs a value (possible values: auto, perf, ptrace, suspend, etw)",
        );
        check(
            "completions x",
            "invalid value 'x' for '<SHELL>' (possible values: bash, elvish, fish, powershell, zsh)",
        );
        check(
            "record --include-args=x ls",
            "invalid value 'x' for '--include-args[=<N>]': not a whole number from 0 on, such as 10",
        );
        check(
            "record --address x ls",
            "invalid value 'x' for '--address <IP>': not an IP address, such as 127.0.0.1",
        );
        check(
            "record -P 70000 ls",
            "invalid value '70000' for '--port <PORT>': not a whole number from 0 to 65535",
        );
        check("report --nonsense", "there is no option '--nonsense'");
        check("report a b", "'b' is one argument too many");
        check("report --json=1", "'--json' takes no value, and '1' is given");
        check("record -d 1 -d 2 ls", "'--duration <SECONDS>' is given more than once");
        check("record -a -p 1", "'--all-cpus' cannot be used with '--pid <PID,...>'");
        check("annotate", "'<FUNCTION>' is missing");
        check("top -n 1", "'--batch' and '<COMMAND>...' are missing");
        check("cache x", "there is no command 'x'");
    }

    #[test]
    fn a_value_that_begins_with_a_dash_is_a_value() {
        let check = |argv: &[&str], message: &str, hint: Option<&str>| {
            let usage_error = usage_error(argv);
            assert_eq!(usage_error.message, message, "{argv:?}");
            assert_eq!(usage_error.hints[..usage_error.hints.len() - 1], *hint.as_slice(), "{argv:?}");
        };
        let no_number = |option: &str, value: &str| {
            format!("invalid value '{value}' for '{option}': not a whole number from 0 on, such as 10")
        };
        check(&["report", "--limit", "-1"], &no_number("--limit <N>", "-1"), None);
        check(&["report", "--limit", "-1", "p.json"], &no_number("--limit <N>", "-1"), None);
        let hint = "to give '-x.json.gz' to '-o', type: -o ./-x.json.gz";
        check(&["record", "-o", "-x.json.gz", "ls"], "there is no option '-x'", Some(hint));
        let hint = "to give '-main' to '--focus', type: --focus=-main";
        check(&["report", "--focus", "-main"], "there is no option '-m'", Some(hint));
        check(
            &["report", "--json", "-1"],
            "there is no option '-1'",
            Some("to pass '-1' as a value, use '-- -1'"),
        );
    }

    #[test]
    fn hints_end_with_the_help_of_the_command() {
        let check = |argv: &[&str], expected: &[&str]| assert_eq!(usage_error(argv).hints, expected);
        check(
            &["report", "a", "b"],
            &[
                "usage: nyquist report [OPTIONS] [FILE]",
                "`nyquist report --help` lists the options and what they take",
            ],
        );
        check(
            &["record", "--backend", "prf", "ls"],
            &["similar: the value 'perf'", "`nyquist record --help` lists the options and what they take"],
        );
        check(&["cache", "x"], &["`nyquist cache --help` lists the commands"]);
        check(
            &["x-no-such"],
            &["to record a program, type: nyquist record x-no-such", "`nyquist --help` lists the commands"],
        );
    }

    #[test]
    fn words_of_other_tools_have_their_replacement() {
        let check = |argv: &[&str], expected: &str| {
            let hints = usage_error(argv).hints;
            assert!(hints[0].contains(expected) && hints.len() == 2, "{argv:?}: {hints:?}");
        };
        check(&["report", "--no-children"], "--sort total");
        check(&["report", "--stdio"], "text in the terminal");
        check(&["record", "-g", "ls"], "always recorded");
        check(&["open", "p.json"], "nyquist load FILE");
        check(&["report", "--top"], "nyquist report");
    }

    #[test]
    fn help_is_a_command_too() {
        for argv in [&["help"][..], &["help", "record"]] {
            assert_eq!(command(argv).unwrap_err().kind(), ErrorKind::DisplayHelp, "{argv:?}");
        }
    }

    #[test]
    fn a_wrong_word_gets_a_tip() {
        let check = |argv: &[&str], expected: &[&str]| {
            assert_eq!(usage_error(argv).hints.split_last().unwrap().1, expected, "{argv:?}");
        };
        check(&["./app"], &["to record a program, type: nyquist record ./app"]);
        check(&["recrod"], &["similar: the command 'record'"]);
        check(&["cache", "foo"], &[]);
        let named = |argv: &[&str], expected: &str| {
            check(argv, &[&format!("files are named without {expected}")]);
        };
        named(&["report", "-i", "perf.data"], "'-i', type: nyquist report perf.data");
        named(&["script", "--input=perf.data"], "'--input', type: nyquist script perf.data");
        named(&["load", "-iperf.data", "--no-open"], "'-i', type: nyquist load perf.data");
        named(&["import", "-i"], "'-i', type: nyquist import FILE");
        named(&["flamegraph", "--input", "-o", "out.svg"], "'--input', type: nyquist flamegraph FILE");
        for (argv, meant) in [
            (["record", "--frequency", "99"], "--rate"),
            (["record", "--freq=99", "ls"], "--rate"),
            (["top", "--freq", "99"], "--rate"),
            (["record", "--output-file", "x"], "--output"),
            (["export", "--outfile", "x"], "--output"),
            (["record", "--time", "3"], "--duration"),
            (["record", "--pids", "3"], "--pid"),
        ] {
            check(&argv, &[&format!("similar: the option '{meant}'")]);
        }
        // The words after `--` are a command to run.
        check(&["record", "--xyzzy", "ls"], &[]);
        // This command has no such option.
        assert!(!usage_error(&["report", "--freq", "3"]).hints.iter().any(|hint| hint.contains("--rate")));
        check(&["doctor", "--input", "perf.data"], &["to pass '--input' as a value, use '-- --input'"]);
    }
}
