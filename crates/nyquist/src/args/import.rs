//! The arguments of `nyquist import`.

use crate::args::{PresentationArgs, RecordingArgs};
use clap::Args;
use nyquist_profile::firefox::FormatVersion;
use std::path::PathBuf;

/// `nyquist import`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist import perf.data -s -o profile.json.gz      Convert a recording of `perf record`
  perf record -o - ./app | nyquist import - -s        Convert it while it is made
  nyquist import perf.data --event page-faults        Show where pages were first touched
  nyquist import app.pprof -s                         Convert a profile of pprof, as all that `load` takes")]
pub(crate) struct ImportArgs {
    /// The recording (perf.data, a file or a folder) or a profile of another program ("-": standard input)
    pub(crate) file: PathBuf,
    /// Save the profile there, in the format that the name ends in ("-": standard output)
    #[arg(short, long, value_name = "FILE", default_value = "profile.json.gz")]
    pub(crate) output: PathBuf,
    /// Save the profile and end, without serving it
    #[arg(short, long)]
    pub(crate) save_only: bool,
    /// The version of the Firefox Profiler's format to write: 66, or 49 for readers of per-thread tables
    #[arg(long, value_name = "VERSION", env = "NYQUIST_PROFILE_VERSION", default_value_t)]
    pub(crate) profile_version: FormatVersion,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    #[command(flatten)]
    pub(crate) presentation: PresentationArgs,
}
