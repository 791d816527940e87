//! The arguments that say where a recording is kept while it runs.

use crate::memory::size;
use clap::Args;
use std::path::PathBuf;

/// Where a recording is kept while it runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpoolArgs {
    /// Keep what was recorded so far in this folder, so that `nyquist recover` has it if nyquist is killed
    /// (default: $XDG_STATE_HOME/nyquist/spool, or ~/.local/state/nyquist/spool) (Linux)
    #[arg(long, value_name = "DIR", conflicts_with = "no_spool", hide_short_help = true)]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) spool: Option<PathBuf>,
    /// Keep nothing on disk until the recording ends
    #[arg(long, hide_short_help = true)]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) no_spool: bool,
    /// Keep no more than this in that folder, of all recordings together, as 512M or 4G (default: 4G); a
    /// recording that reaches it goes on in memory alone
    #[arg(long, value_name = "SIZE", conflicts_with = "no_spool", hide_short_help = true, value_parser = max_size)]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) max_size: Option<u64>,
}

fn max_size(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| "not a size, such as 512M or 4G".to_owned())
}
