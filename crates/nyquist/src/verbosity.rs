//! The options of every command.

use clap::Args;

/// The options of every command.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct Verbosity {
    /// Say more: what was tried, and where each file was looked for
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}
