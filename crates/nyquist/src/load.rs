//! `nyquist load`: serves a profile of any format.

use crate::args::LoadArgs;
use crate::control::Control;
use crate::failure::Failure;
use crate::perf_data;
use crate::printer::Printer;
use crate::profile_file;
use crate::serve::{ServedProfile, serve};
use crate::sidecar;
use crate::source_paths::name_specially;
use crate::system::signals::Requests;
use std::path::PathBuf;

/// Runs the subcommand: serves the profile until Ctrl-C.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.presentation.verbosity);
    // Until the server starts, Ctrl-C ends this program immediately.
    let read = |file: &PathBuf| {
        let mut profile = profile_file::read(file, &args.recording, &args.presentation.symbols, printer)?;
        name_specially(&mut profile);
        Ok::<_, Failure>(profile)
    };
    let first = read(&args.file)?;
    let (file, profile, before) = match &args.after {
        Some(after) => (after, read(after)?, Some(first)),
        None => (&args.file, first, None),
    };
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let bytes = profile_file::document(file, &profile)?;
    let symbols = perf_data::with_its_files(file, &args.presentation.symbols, printer);
    let stated = sidecar::symbols_of(file, &symbols, printer);
    let served = ServedProfile { bytes, profile, before, stated };
    serve(served, &args.presentation.server, &symbols, printer, &control)
}
