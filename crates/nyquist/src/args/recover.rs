//! The arguments of `nyquist recover`.

use crate::args::{SymbolArgs, Verbosity};
use clap::Args;
use nyquist_profile::firefox::FormatVersion;
use std::path::PathBuf;

/// `nyquist recover`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist recover                               List what can be recovered
  nyquist recover -o profile.json.gz            Make a profile of it, if it is one recording
  nyquist recover 4711-a2f0 -o profile.json.gz  Make a profile of one of them
  nyquist recover --discard 4711-a2f0           Remove one, without a name all of them")]
pub(crate) struct RecoverArgs {
    /// The recording, as the list names it
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) name: Option<String>,
    /// Save its profile there, in the format that the name ends in ("-": standard output); with a name, the default is
    /// profile.json.gz
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["discard", "json"])]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) output: Option<PathBuf>,
    /// Remove it, or all of them
    #[arg(long)]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) discard: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "discard")]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) json: bool,
    /// Look in this folder, as `record --spool` named it
    #[arg(long, value_name = "DIR")]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) spool: Option<PathBuf>,
    /// The version of the Firefox Profiler's format to write: 66, or 49 for readers of per-thread tables
    #[arg(long, value_name = "VERSION", env = "NYQUIST_PROFILE_VERSION", default_value_t)]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) profile_version: FormatVersion,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) verbosity: Verbosity,
}
