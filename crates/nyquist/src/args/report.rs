//! What `nyquist report` can be asked for.

use crate::args::Verbosity;
use clap::Args;
use std::path::PathBuf;

/// `nyquist report`
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The profile, or a recording (perf.data)
    pub(crate) file: PathBuf,
    /// Show so many functions (0: all)
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}
