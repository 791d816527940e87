//! The arguments of `nyquist cache`.

use crate::args::Verbosity;
use clap::{Args, Subcommand};

/// `nyquist cache`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist cache                 What is kept, and where
  nyquist cache clear           Remove all of it")]
pub(crate) struct CacheArgs {
    /// The action; without it, the caches are shown
    #[command(subcommand)]
    pub(crate) action: Option<CacheAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// The actions on the caches.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Remove the caches. Names and files are looked up or downloaded again when they are needed
    Clear {
        /// Remove only the names that were looked up
        #[arg(long)]
        symbols: bool,
        /// Remove only the files that were downloaded or unpacked
        #[arg(long)]
        downloads: bool,
    },
}
