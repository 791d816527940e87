//! The options of every command that reads a profile and prints something of it.

use crate::args::{FilterArgs, SymbolArgs, TypedReadOptions, Verbosity};
use clap::Args;

/// What of a profile is read, and how functions get their names.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
    /// The options as they were typed, for the commands that an answer suggests.
    #[command(flatten)]
    pub(crate) typed: TypedReadOptions,
}
