//! `nyquist load`, and reading a profile or a recording for any command.

use crate::args::{LoadArgs, RecordingArgs, SymbolArgs};
use crate::control::Control;
use crate::failure::Failure;
use crate::perf_data;
use crate::printer::Printer;
use crate::profile_file;
use crate::serve::serve_bytes;
use nyquist_profile::Profile;
use nyquist_record::linux::signals::Requests;
use std::path::Path;

/// Runs the subcommand: serves the profile until Ctrl-C.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    let from_stdin = args.file == Path::new("-");
    let recording = from_stdin || perf_data::is_recording(&args.file);
    if let (false, Some(option)) = (recording, args.recording.given()) {
        return Err(Failure::new(format!("{option} is for recordings (perf.data); this is a saved profile")));
    }
    // Until it is served, Ctrl-C ends it as it ends any program.
    let profile = if recording {
        perf_data::read(&args.file, &args.recording, &args.symbols, printer)?
    } else {
        profile_file::read(&args.file, printer)?
    };
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let bytes = profile_file::document(&args.file, &profile)?;
    serve_bytes(bytes, &profile, &args.server, &args.symbols, None, printer, &control)
}

/// Reads a saved profile, or a recording with all that is in it.
pub(crate) fn read(path: &Path, symbols: &SymbolArgs, printer: Printer) -> Result<Profile, Failure> {
    if perf_data::is_recording(path) {
        return perf_data::read(path, &RecordingArgs::default(), symbols, printer);
    }
    profile_file::read(path, printer)
}
