//! `nyquist load`, and reading a saved profile for any command.

use crate::args::LoadArgs;
use crate::control::Control;
use crate::failure::{Failure, io_reason};
use crate::printer::Printer;
use crate::serve::serve;
use nyquist_profile::{Profile, firefox};
use nyquist_record::linux::signals::Requests;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Runs the subcommand: serves the profile until Ctrl-C.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let profile = read(&args.file)?;
    serve(&args.file, &profile, &args.server, &args.symbols, None, printer, &control)
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
