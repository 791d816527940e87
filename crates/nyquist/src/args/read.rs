//! The options of every command that reads a profile and prints something of it.

use crate::args::{FilterArgs, SymbolArgs, TypedReadOptions, Verbosity};
use clap::Args;

/// What of a profile is read, and how functions get their names.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadArgs {
    /// The options as they were typed, for the commands that an answer suggests. The parser takes the values out for
    /// the fields behind it, so it comes first.
    #[command(flatten)]
    pub(crate) typed: TypedReadOptions,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}
