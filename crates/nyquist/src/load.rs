//! `nyquist load`: a profile in the Firefox Profiler.

use crate::args::LoadArgs;
use crate::control::Control;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::profile_file;
use crate::serve::serve;
use nyquist_record::linux::signals::Requests;

/// Runs the subcommand: serves the profile until Ctrl-C.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let profile = profile_file::read(&args.file, printer)?;
    serve(&args.file, &profile, &args.server, &args.symbols, None, printer, &control)
}
