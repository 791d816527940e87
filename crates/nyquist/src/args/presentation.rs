//! The options of every command that gets a profile and shows it on a page.

use crate::args::{ServerArgs, SymbolArgs, Verbosity};
use clap::Args;

/// How functions get their names, how the profile is served, and what is said about it.
#[derive(Clone, Debug, Args)]
pub(crate) struct PresentationArgs {
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}
