//! The arguments of `nyquist load`.

use crate::args::{PresentationArgs, RecordingArgs};
use clap::Args;
use std::path::PathBuf;

/// `nyquist load`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist load profile.json.gz              Open it in the Firefox Profiler
  nyquist load perf.data --ui builtin       What perf has recorded, in the built-in viewer, without internet
  nyquist load before.json.gz after.json.gz    Compare two, with a differential flame graph
  nyquist load profile.json.gz -n           Serve it and print the link, without a browser")]
pub(crate) struct LoadArgs {
    /// The profile, or a recording (perf.data; "-": standard input)
    pub(crate) file: PathBuf,
    /// A later run of the same program: it is shown in comparison with the first
    pub(crate) after: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    #[command(flatten)]
    pub(crate) presentation: PresentationArgs,
}
