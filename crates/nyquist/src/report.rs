//! `nyquist report`.

use crate::args::ReportArgs;
use crate::failure::Failure;

/// Runs the subcommand.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    crate::load::read(&args.file).map(|_| ())
}
