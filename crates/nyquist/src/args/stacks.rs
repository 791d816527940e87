//! The options of a recording for stacks: the method of unwinding, and the size of stack copies for it.

use crate::args::quantity::whole;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use nyquist_record::linux;

/// How the callers are found.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct StackArgs {
    /// How to find the callers of the sampled function
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub(crate) call_graph: CallGraph,
    /// Copy so many bytes of each stack, to find the callers in it; larger copies reach further and cost more
    /// [default: 32 kB, raised to the maximum, 65528, when many stacks are deeper]
    #[arg(long, value_name = "BYTES", value_parser = |text: &str| whole::<u32>(text, 8..=linux::Options::MOST_STACK_BYTES))]
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

impl From<CallGraph> for linux::CallGraph {
    fn from(call_graph: CallGraph) -> Self {
        match call_graph {
            CallGraph::Auto => Self::Auto,
            CallGraph::Fp => Self::FramePointers,
            CallGraph::Dwarf => Self::Dwarf,
            CallGraph::None => Self::None,
        }
    }
}

impl StackArgs {
    /// The options of a recording with these of its stacks.
    pub(crate) fn apply(self, options: linux::Options) -> Result<linux::Options, Failure> {
        if self.stack_size.is_some() && matches!(self.call_graph, CallGraph::Fp | CallGraph::None) {
            return Err(Failure::new(
                "--stack-size needs copies of stacks, and --call-graph fp or none makes no copies",
            )
            .hint("leave out one of them"));
        }
        Ok(linux::Options { call_graph: self.call_graph.into(), stack_bytes: self.stack_size, ..options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_needs_copies() {
        let applied = |call_graph, stack_size| {
            let options = StackArgs { call_graph, stack_size }.apply(linux::Options::default());
            options.map(|options| (options.call_graph, options.stack_bytes)).ok()
        };
        assert_eq!(applied(CallGraph::Auto, None), Some((linux::CallGraph::Auto, None)));
        assert_eq!(applied(CallGraph::Dwarf, Some(4096)), Some((linux::CallGraph::Dwarf, Some(4096))));
        assert_eq!(applied(CallGraph::Fp, None), Some((linux::CallGraph::FramePointers, None)));
        assert_eq!(applied(CallGraph::Fp, Some(4096)), None);
        assert_eq!(applied(CallGraph::None, Some(4096)), None);
    }
}
