//! `nyquist load`: any profile, served.

use crate::args::LoadArgs;
use crate::control::Control;
use crate::failure::Failure;
use crate::perf_data;
use crate::printer::Printer;
use crate::profile_file;
use crate::serve::serve;
use crate::sidecar;
use crate::source_paths::name_specially;
use nyquist_record::linux::signals::Requests;

/// Runs the subcommand: serves the profile until Ctrl-C.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    // Until it is served, Ctrl-C ends it as it ends any program.
    let mut profile = profile_file::read(&args.file, &args.recording, &args.symbols, printer)?;
    name_specially(&mut profile);
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let bytes = profile_file::document(&args.file, &profile)?;
    let symbols = perf_data::with_its_files(&args.file, &args.symbols, printer);
    let stated = sidecar::beside(&args.file, &symbols, printer);
    serve(bytes, profile, &args.server, &symbols, stated, printer, &control)
}
