//! `nyquist record`: launch or attach, sample, convert, name, save, and show.

mod ending;
mod run;
mod subject;

pub(crate) use subject::command_of;

use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure, io_reason};
use crate::number::counted;
use crate::output::{Output, Owner};
use crate::printer::Printer;
use crate::save::save;
use crate::serve::serve;
use crate::symbolicate::symbolicate;
use crate::{flamegraph, launch_advice, summary};
use nyquist_convert::Finished;
use nyquist_record::linux::backend::{OpenError, Summary};
use nyquist_record::linux::launch::LaunchError;
use nyquist_record::linux::perf::EndReason;
use nyquist_record::linux::signals::Requests;
use nyquist_record::linux::{Credentials, invoking_user};
use run::{Recorder, Run};
use std::io::{self, IsTerminal as _};
use std::mem;
use std::time::{Duration, Instant};

/// Runs the subcommand and gives back the exit status.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    // Before any thread is started: they all leave these signals to one.
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let user = if args.as_root { None } else { invoking_user() };
    let owner = user.as_ref().map(|user| Owner { uid: user.uid, gid: user.gid });
    let output = open_output(args, owner)?;
    let Recorded { finished, summary, status, used } = record(args, printer, &control, user.as_ref(), owner)?;
    let Finished { profile, statistics, libs, side_news } = finished;
    side_news.iter().for_each(|news| printer.warn(news));
    let profile = symbolicate(profile, &libs, &args.symbols, printer, &control);
    let goes_on = wants_server(args);
    let_go(libs, goes_on);
    control.enter(Phase::Saving);
    let saved = save(&profile, output, args.profile_version, owner, printer)?;
    summary::print(printer, &profile, &summary, &statistics, used, saved.path.as_deref());
    if let Some(picture) = &args.flamegraph {
        flamegraph::save(&profile, picture, owner)?;
        printer.say(format_args!("Wrote {}", picture.display()));
    }
    if let (Some(path), true) = (saved.path, goes_on) {
        serve(&path, &profile, &args.server, &args.symbols, owner, printer, &control)?;
    }
    let_go(profile, goes_on);
    // A script that finds no file where it asked for one must hear of it.
    Ok(if saved.as_asked { status } else { status.max(FAILED) })
}

/// Gives memory back where the program goes on. Else the system soon takes all of it, in less time than its pieces take.
fn let_go<T>(memory: T, goes_on: bool) {
    if goes_on {
        drop(memory);
    } else {
        mem::forget(memory);
    }
}

/// Opens the output, and keeps standard output for it alone where it is that.
fn open_output(args: &RecordArgs, owner: Option<Owner>) -> Result<Output, Failure> {
    let path = &args.output;
    let cannot_write =
        |error: io::Error| Failure::new(format!("cannot write {}: {}", path.display(), io_reason(&error)));
    let output = Output::open(path, owner)
        .map_err(|error| cannot_write(error).hint("choose another place with -o FILE"))?;
    if output.is_stdout() {
        rustix::stdio::dup2_stdout(io::stderr()).map_err(|error| cannot_write(error.into()))?;
    }
    Ok(output)
}

/// Without any terminal nobody would end the server.
fn wants_server(args: &RecordArgs) -> bool {
    let on_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    !args.save_only && (args.serve || on_terminal)
}

/// What the recording gave.
struct Recorded {
    finished: Finished,
    summary: Summary,
    status: u8,
    /// The CPU time that the command used in all runs, by the kernel's account, where all of it was to be recorded.
    used: Option<Duration>,
}

/// Records the command, as often as it shall run, or what runs already.
fn record(
    args: &RecordArgs,
    printer: Printer,
    control: &Control,
    user: Option<&Credentials>,
    owner: Option<Owner>,
) -> Result<Recorded, Failure> {
    let began = Instant::now();
    let recorder = Recorder { args, printer, control, user, owner };
    let Run { mut converter, mut summary, mut status, mut used } = recorder.run(args.duration, None)?;
    for run in 2..=args.runs.iteration_count {
        let left = args.duration.map(|duration| duration.saturating_sub(began.elapsed()));
        if summary.reason != EndReason::Exited || left == Some(Duration::ZERO) {
            break;
        }
        if status != 0 && !args.runs.ignore_exit_code {
            let runs = counted(u64::from(args.runs.iteration_count - run + 1), "run");
            printer.warn(format_args!("the command failed with {status}: {runs} left out (-i goes on)"));
            break;
        }
        printer.detail(format_args!("Run {run} of {}", args.runs.iteration_count));
        let (mut former, used_before) = (summary, used);
        Run { converter, summary, status, used } = recorder.run(left, Some(converter))?;
        used = used.zip(used_before).map(|(a, b)| a + b);
        summary.total_cpu_time_ns =
            summary.total_cpu_time_ns.zip(former.total_cpu_time_ns).map(|(a, b)| a + b);
        former.lost_privileges.retain(|notice| !summary.lost_privileges.contains(notice));
        summary.lost_privileges.append(&mut former.lost_privileges);
    }
    let used = used.filter(|_| args.cpu.is_none() && !args.shape.rows.main_thread_only);
    Ok(Recorded { finished: converter.finish(), summary, status, used })
}

pub(crate) fn launch_failure(error: &LaunchError) -> Failure {
    let failure = Failure::new(error.to_string()).status(error.exit_code());
    launch_advice::advice(error).into_iter().fold(failure, Failure::hint)
}

pub(crate) fn open_failure(error: &OpenError) -> Failure {
    error.advice().into_iter().fold(Failure::new(error.to_string()), Failure::hint)
}
