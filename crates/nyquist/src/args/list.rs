//! The arguments of `nyquist list`.

use crate::args::Verbosity;
use clap::Args;

/// `nyquist list`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist list                 All that can be counted here; of tracepoints the groups
  nyquist list cache           The events with `cache` in their name, or what they count
  nyquist list sched           The tracepoints of a group
  nyquist list 'sys_enter_*'   Those that fit a pattern
  nyquist list ./app           The probes that a program was built with (USDT)")]
pub(crate) struct ListArgs {
    /// A part of a name, a pattern, a group of events, or a program
    #[arg(value_name = "WORD")]
    pub(crate) word: Option<String>,
    /// Print JSON, with all tracepoints
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the names, one a line
    #[arg(long, conflicts_with = "json")]
    pub(crate) names: bool,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}
