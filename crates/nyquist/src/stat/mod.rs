//! `nyquist stat`: counts events in a program without sampling it.

mod compare;
mod counting;
mod events;
mod format;
mod interval;
mod json;
mod measure;
mod measured;
mod table;

use crate::args::{NOT_UNDERSTOOD, StatArgs};
use crate::control::Control;
use crate::failure::Failure;
use crate::identity;
use crate::output::Output;
use crate::page;
use crate::printer::{self, Printer};
use crate::text::{Screen, Text};
use measure::Meter;
use measured::{RunMeasurements, Summary};
use nyquist_record::linux::signals::Requests;
use serde_json::Value;
use std::ffi::OsString;

/// The default number of runs of each side of a comparison.
const RUNS_OF_A_COMPARISON: u32 = 5;

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &StatArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    check(args)?;
    let requested = events::requested(args)?;
    if args.as_root {
        identity::serve_root();
    }
    let output =
        args.output.as_deref().map(|path| Output::open(path).map_err(|refused| refused.failure(path, "-o")));
    let output = output.transpose()?;
    // Before any thread starts, so that all threads block these signals and one thread receives them.
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let meter = Meter::new(args, &requested, &control, printer);
    let measured = match args.commands() {
        (first, Some(second)) => in_turns(args, &meter, [first, second])?,
        (command, None) => vec![repeated(args, &meter, command)?],
    };
    // The rest does not need root.
    if let Err(failure) = identity::give_up_privileges() {
        printer.warn(failure.message);
    }
    let status = measured.iter().filter_map(|runs| runs.last()).map(|run| run.status).max().unwrap_or(0);
    let summaries: Vec<_> = measured.iter().map(|runs| Summary::of(runs, &requested)).collect();
    let commands = args.commands();
    let names = if args.is_command() {
        [Some(commands.0), commands.1].map(|argv| argv.map(format_command))
    } else {
        [Some(target(args)), None]
    };
    let result = Finished { summaries, names, intervals: meter.into_kept() };
    write(args, result, &requested, output)?;
    Ok(status)
}

/// Refuses combinations that the definition of the options cannot exclude.
fn check(args: &StatArgs) -> Result<(), Failure> {
    let (first, second) = args.commands();
    let wrong = |message: &str| Failure::new(message).status(NOT_UNDERSTOOD);
    match second {
        Some(_) if !args.is_command() => {
            Err(wrong("--vs compares commands, and -p, -t and -a count what runs already"))
        }
        Some(_) if args.per_thread => {
            Err(wrong("--vs compares whole commands, and --per-thread counts their threads"))
        }
        Some(_) if args.interval.is_some() => {
            Err(wrong("--vs compares whole runs, and -I shows a part of one"))
        }
        Some(second) if first.is_empty() || second.is_empty() => {
            Err(wrong("a command is missing before or behind --vs")
                .hint("nyquist stat -r 5 ./old --vs ./new"))
        }
        _ if args.is_command() && first.is_empty() => {
            Err(wrong("no command is given").hint("nyquist stat COMMAND"))
        }
        _ => Ok(()),
    }
}

/// Measures the runs of a command, or running processes.
fn repeated(
    args: &StatArgs,
    meter: &Meter<'_>,
    command: &[OsString],
) -> Result<Vec<RunMeasurements>, Failure> {
    let runs = args.repeat.unwrap_or(1);
    let mut measured = Vec::new();
    for run in 1..=runs {
        measured.push(meter.measure(command)?);
        if meter.ends_early(measured.last(), runs - run) {
            break;
        }
    }
    Ok(measured)
}

/// Measures two commands alternately, so that changes of the machine affect both. Every second pair runs in
/// reverse order.
fn in_turns(
    args: &StatArgs,
    meter: &Meter<'_>,
    commands: [&[OsString]; 2],
) -> Result<Vec<Vec<RunMeasurements>>, Failure> {
    let runs = args.repeat.unwrap_or(RUNS_OF_A_COMPARISON);
    let mut measured = vec![Vec::new(), Vec::new()];
    for run in 1..=runs {
        let order = if run % 2 == 1 { [0, 1] } else { [1, 0] };
        for side in order {
            measured[side].push(meter.measure(commands[side])?);
            if meter.ends_early(measured[side].last(), runs - run) {
                return Ok(measured);
            }
        }
    }
    Ok(measured)
}

/// The running target.
fn target(args: &StatArgs) -> String {
    let pids: Vec<_> = args.pid.iter().map(u32::to_string).collect();
    if let Some(tid) = args.tid {
        return format!("thread {tid}");
    }
    match &*pids {
        [] => "the whole machine".to_owned(),
        [pid] => format!("process {pid}"),
        _ => format!("processes {}", pids.join(", ")),
    }
}

/// A command as it was typed.
fn format_command(argv: &[OsString]) -> String {
    argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The complete output.
struct Finished {
    summaries: Vec<Summary>,
    /// The commands as they were typed.
    names: [Option<String>; 2],
    /// The intervals that are not printed yet.
    intervals: Text,
}

fn write(
    args: &StatArgs,
    Finished { summaries, names, intervals }: Finished,
    requested: &events::CountedEvents,
    output: Option<Output>,
) -> Result<(), Failure> {
    if args.json {
        let value = match &*summaries {
            [before, after] => json::comparison(before, after, &names),
            [summary, ..] => json::summary(summary, names[0].as_deref()),
            [] => return Ok(()),
        };
        return write_json(&value, args.interval.map(|_| intervals), output);
    }
    let screen = if output.is_some() { Screen::of_file() } else { Screen::of_stderr() };
    let text = match &*summaries {
        [before, after] => compare::text(before, after, &names, screen),
        [summary, ..] => table::text(summary, names[0].as_deref(), screen),
        [] => Text::default(),
    };
    let notes = table::notes(&summaries, requested);
    let text = if args.verbosity.quiet { text } else { text + notes };
    match output {
        None => printer::print_result(&text),
        Some(output) => save(output, (intervals + text).as_str())?,
    }
    Ok(())
}

/// Writes JSON; after lines of intervals, as one line, too.
fn write_json(value: &Value, intervals: Option<Text>, output: Option<Output>) -> Result<(), Failure> {
    match (output, intervals) {
        (None, Some(_)) => page::write_json_with(|out| writeln!(out, "{value}")),
        (None, None) => page::print_json(value),
        (Some(output), Some(lines)) => save(output, &format!("{}{value}\n", lines.as_str())),
        (Some(output), None) => save(output, &format!("{value:#}\n")),
    }
}

fn save(output: Output, text: &str) -> Result<(), Failure> {
    let path = output.name().to_owned();
    let saved = output.save(|out| out.write_all(text.as_bytes()));
    saved.map(drop).map_err(|error| Failure::cannot_write(&path, &error))
}
