//! The arguments of `nyquist script`.

use crate::args::ReadArgs;
use clap::Args;
use std::path::PathBuf;

/// `nyquist script`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist script                       The samples of profile.json.gz, as `perf script` prints them
  nyquist script --range 2s-3s --json    A part of the run, as JSON")]
pub(crate) struct ScriptArgs {
    /// The profile
    #[arg(default_value = "profile.json.gz")]
    pub(crate) file: PathBuf,
    /// Print at most N samples (0: all)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) limit: usize,
    /// Print an object of JSON for each sample, a line each
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
