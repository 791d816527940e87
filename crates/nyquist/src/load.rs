//! `nyquist load`, and reading a saved profile for any command.

use crate::args::LoadArgs;
use crate::control::Control;
use crate::failure::{Failure, io_reason};
use crate::perf_data;
use crate::printer::Printer;
use crate::serve::{serve, serve_bytes};
use nyquist_profile::firefox::WriteOptions;
use nyquist_profile::{Profile, firefox};
use nyquist_record::linux::signals::Requests;
use std::fs::File;
use std::io::BufReader;
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
        read(&args.file)?
    };
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    if !recording {
        return serve(&args.file, &profile, &args.server, &args.symbols, None, printer, &control);
    }
    let mut bytes = Vec::new();
    firefox::write(&profile, WriteOptions { gzip: true, ..WriteOptions::default() }, &mut bytes)
        .map_err(|error| Failure::because("the profile cannot be written", &error))?;
    serve_bytes(bytes, &profile, &args.server, &args.symbols, None, printer, &control)
}

/// Reads a saved profile.
pub(crate) fn read(path: &Path) -> Result<Profile, Failure> {
    let cannot_read = |error: &std::io::Error| {
        Failure::new(format!("cannot read {}: {}", path.display(), io_reason(error)))
    };
    let file = File::open(path).map_err(|error| cannot_read(&error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(cannot_read(&std::io::ErrorKind::IsADirectory.into())
            .hint("name a profile, such as profile.json.gz"));
    }
    firefox::read(BufReader::new(file))
        .map_err(|error| Failure::because(format_args!("cannot load {}", path.display()), &error))
}
