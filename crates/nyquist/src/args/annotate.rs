//! The arguments of `nyquist annotate`.

use crate::args::{FormatArgs, ReadArgs};
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
    /// How often event A happened for each event B, by source line, as cache-misses/instructions. `cpu-time` stands for
    /// the CPU time
    #[arg(long, value_name = "A/B", conflicts_with_all = ["asm", "event", "off_cpu", "wall"])]
    pub(crate) ratio: Option<String>,
    /// The hottest first, instead of in the order of the code
    #[arg(long)]
    pub(crate) hottest: bool,
    /// Lines shown around each line that takes time; instructions, too, where not all of them are shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) context: u32,
    /// Show at most N lines or instructions; of more, those that take time, if need be the hottest ones (0: all)
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}
