//! The arguments of `nyquist doctor`.

use crate::args::{SymbolArgs, Verbosity};
use clap::Args;

/// `nyquist doctor`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist doctor              What can be recorded on this machine, and what would allow more
  nyquist doctor ./app        Whether a program and its libraries have names and unwind information
  nyquist doctor 4711         The same of a running process, and whether it may be attached to

The exit status is 0 unless nothing can be recorded.")]
pub(crate) struct DoctorArgs {
    /// A program, a library, or the number of a process (a file whose name is a number: ./123)
    #[arg(value_name = "FILE|PID")]
    pub(crate) subject: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}
