//! What `nyquist annotate` can be asked for.

use crate::args::{FilterArgs, FormatArgs, SymbolArgs, Verbosity};
use clap::Args;
use std::path::PathBuf;

/// `nyquist annotate`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist annotate parse                  Source and instructions of parse, of profile.json.gz
  nyquist annotate f-123 p.json.gz        The same of a function's handle, as nyquist query shows it
  nyquist annotate memcpy --asm --hottest Only instructions, the hottest first")]
pub(crate) struct AnnotateArgs {
    /// The function: its name, the last parts of its path, its handle (f-123), or a regex
    pub(crate) function: String,
    /// The profile
    #[arg(default_value = "profile.json.gz")]
    pub(crate) file: PathBuf,
    /// Only source lines
    #[arg(long, conflicts_with = "asm")]
    pub(crate) source: bool,
    /// Only instructions
    #[arg(long)]
    pub(crate) asm: bool,
    /// The hottest first, and not in order
    #[arg(long)]
    pub(crate) hottest: bool,
    /// Lines shown around each line that takes time
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) context: u32,
    /// Show so many lines or instructions (0: all)
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}
