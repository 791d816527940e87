//! `nyquist record`: launch or attach, sample, convert, name, save, and show.

use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::failure::{Failure, io_reason};
use crate::output::{Output, Owner};
use crate::printer::Printer;
use crate::save::save;
use crate::serve::serve;
use crate::symbolicate::symbolicate;
use crate::{machine, summary};
use nyquist_convert::event::{Pid, Timestamp};
use nyquist_convert::{Converter, Finished, Options};
use nyquist_profile::Meta;
use nyquist_record::linux::launch::{self, Ended, LaunchError, Running, Suspended};
use nyquist_record::linux::perf::{self, Outcome, Perf, Target};
use nyquist_record::linux::signals::{EndSignal, KILL, Requests};
use nyquist_record::linux::{Command, Credentials, invoking_user};
use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs the subcommand and gives back the exit status.
pub fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    // Before any thread is started: they all leave these signals to one.
    let requests = Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let user = if args.as_root { None } else { invoking_user() };
    let owner = user.as_ref().map(|user| Owner { uid: user.uid, gid: user.gid });
    let output = open_output(args, owner)?;
    let recorded = record(args, printer, &control, user, &output)?;
    let status = recorded.status;
    let named = symbolicate(recorded.finished, &args.symbols, printer, &control);
    control.enter(Phase::Brief);
    let version = args.profile_version.as_str();
    let saved = save(&named.profile, output, version, owner, printer)?;
    summary::print(printer, &named.profile, &recorded.outcome);
    if let (Some(path), true) = (saved, wants_server(args)) {
        serve(&path, named.profile, &args.server, &args.symbols, owner, printer, &control)?;
    }
    Ok(status)
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
    outcome: Outcome,
    status: u8,
}

/// The recorded program, before and while it runs.
enum Program {
    Launched(Suspended),
    Attached(Pid),
}

fn record(
    args: &RecordArgs,
    printer: Printer,
    control: &Control,
    user: Option<Credentials>,
    output: &Output,
) -> Result<Recorded, Failure> {
    let program = match args.pid {
        Some(pid) => Program::Attached(Pid(pid)),
        None => Program::Launched(prepare(args, user)?),
    };
    let target = match &program {
        Program::Launched(child) => Target::Child(child.pid()),
        Program::Attached(pid) => Target::Attach(*pid),
    };
    let options = perf::Options { rate_hz: args.rate, duration: args.duration, ..perf::Options::default() };
    let recording = Perf::open(target, &options).map_err(|error| open_failure(&error))?;
    let outcome = recording.outcome().clone();
    summary::print_outcome(printer, &outcome, args.rate);
    let mut converter = Converter::new(converter_options(args, &outcome));
    let command = match program {
        Program::Launched(child) => Some(child.start().map_err(|error| launch_failure(&error))?),
        Program::Attached(_) => None,
    };
    let signaller = command.as_ref().map(Running::signaller);
    control.enter(Phase::Recording { stop: recording.stop_handle(), command: signaller, interrupts: 0 });
    let ended = command.map(wait_beside);
    let _ = output;
    convert(recording, &mut converter);
    let status = ended.map_or(0, |(command, ended)| exit_status(args, &command, &ended));
    control.enter(Phase::Brief);
    Ok(Recorded { finished: converter.finish(), outcome, status })
}
