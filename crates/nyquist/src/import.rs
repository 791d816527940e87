//! `nyquist import`: a recording or a profile of another program becomes a saved profile.

use crate::args::ImportArgs;
use crate::control::Control;
use crate::failure::{FAILED, Failure, io_reason};
use crate::input;
use crate::memory;
use crate::output::Output;
use crate::perf_data;
use crate::printer::Printer;
use crate::save::save;
use crate::serve::serve;
use nyquist_record::linux::signals::Requests;
use std::io;

/// Runs the subcommand and gives back the exit status.
pub(crate) fn run(args: &ImportArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    let cannot_write = |error: io::Error| {
        Failure::new(format!("cannot write {}: {}", args.output.display(), io_reason(&error)))
    };
    let output = Output::open(&args.output, None)
        .map_err(|error| cannot_write(error).hint("choose another place with -o FILE"))?;
    if output.is_stdout() {
        rustix::stdio::dup2_stdout(io::stderr()).map_err(|error| cannot_write(error.into()))?;
    }
    let profile = input::read_as(&args.file, &args.recording, &args.symbols, printer)?;
    // What is written is written to its end.
    memory::lift();
    let saved = save(&profile, output, args.profile_version, None, printer)?;
    if let Some(path) = &saved.path {
        printer.say(format_args!("Saved {}", path.display()));
        if !args.save_only {
            let requests = Requests::take_over()
                .map_err(|error| Failure::because("cannot take over signals", &error))?;
            let control = Control::start(requests);
            let symbols = perf_data::with_its_files(&args.file, &args.symbols, printer);
            serve(path, &profile, &args.server, &symbols, None, printer, &control)?;
        }
    }
    Ok(if saved.as_asked { 0 } else { FAILED })
}
