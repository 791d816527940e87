//! The arguments of `nyquist load`.

use crate::args::{PresentationArgs, RecordingArgs};
use clap::Args;
use std::path::PathBuf;

/// `nyquist load`
#[derive(Debug, Args)]
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
