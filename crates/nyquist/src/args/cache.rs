//! What `nyquist cache` can be asked for.

use crate::args::Verbosity;
use clap::{Args, Subcommand};

/// `nyquist cache`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist cache                 What is kept, and where
  nyquist cache clear           Remove all of it")]
pub(crate) struct CacheArgs {
    /// What to do; without it, what is kept is shown
    #[command(subcommand)]
    pub(crate) action: Option<CacheAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// What can be done to the caches.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Remove what is kept. It is looked up or downloaded again when it is needed
    Clear {
        /// Remove the names that were looked up, and no more
        #[arg(long)]
        symbols: bool,
        /// Remove what was downloaded or unpacked, and no more
        #[arg(long)]
        downloads: bool,
    },
}
