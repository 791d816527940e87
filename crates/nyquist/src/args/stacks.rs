//! The options of a recording for stacks: the method of unwinding, and the size of stack copies for it.

use crate::args::quantity::whole;
use clap::{Args, ValueEnum};

/// The largest copy of a stack that Linux makes, in bytes.
const MAX_STACK_BYTES: u32 = 65_528;

/// How the callers are found.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct StackArgs {
    /// How to find the callers of the sampled function
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub(crate) call_graph: CallGraph,
    /// Bytes of each stack to copy, to find the callers in it; larger copies reach further and cost more
    /// [default: the maximum, 65528, or less where the rings are small]
    #[arg(long, value_name = "BYTES", value_parser = |text: &str| whole::<u32>(text, 8..=MAX_STACK_BYTES))]
    pub(crate) stack_size: Option<u32>,
}

/// The ways to find callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallGraph {
    /// The most complete: as dwarf, and the part beyond the copy is read from the running program's memory
    #[default]
    Auto,
    /// The kernel follows frame pointers: the least work, but only programs built with them have whole stacks
    Fp,
    /// Copies of the stack and unwind information, and nothing else
    Dwarf,
    /// Not at all: only the function that ran is recorded, without its callers
    None,
}
