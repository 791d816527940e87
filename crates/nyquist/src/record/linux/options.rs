//! The backend and the stack options for Linux; `run.rs` translates the other options.

use crate::args::{Backend, CallGraph, StackArgs};
use crate::failure::Failure;
use nyquist_record::linux;
use nyquist_record::linux::backend::BackendChoice;

/// The backend, if it is one of Linux.
pub(crate) fn backend(backend: Backend) -> Result<BackendChoice, Failure> {
    let other = match backend {
        Backend::Auto => return Ok(BackendChoice::Auto),
        Backend::Perf => return Ok(BackendChoice::Perf),
        Backend::Ptrace => return Ok(BackendChoice::Ptrace),
        Backend::Suspend => "--backend suspend is for Windows and macOS",
        Backend::Etw => "--backend etw is for Windows",
    };
    Err(Failure::new(other).hint("leave it out: nyquist chooses what works best here"))
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

/// The options of a recording with those of its stacks.
pub(crate) fn with_stacks(args: StackArgs, options: linux::Options) -> Result<linux::Options, Failure> {
    if args.stack_size.is_some() && matches!(args.call_graph, CallGraph::Fp | CallGraph::None) {
        return Err(Failure::new(
            "--stack-size needs copies of stacks, and --call-graph fp or none makes no copies",
        )
        .hint("leave out one of them"));
    }
    Ok(linux::Options { call_graph: args.call_graph.into(), stack_bytes: args.stack_size, ..options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_of_other_systems_are_refused() {
        assert!(matches!(backend(Backend::Ptrace), Ok(BackendChoice::Ptrace)));
        let refused = backend(Backend::Etw).unwrap_err();
        assert_eq!(refused.message, "--backend etw is for Windows");
        assert!(backend(Backend::Suspend).is_err());
    }

    #[test]
    fn a_size_needs_copies() {
        let applied = |call_graph, stack_size| {
            let options = with_stacks(StackArgs { call_graph, stack_size }, linux::Options::default());
            options.map(|options| (options.call_graph, options.stack_bytes)).ok()
        };
        assert_eq!(applied(CallGraph::Auto, None), Some((linux::CallGraph::Auto, None)));
        assert_eq!(applied(CallGraph::Dwarf, Some(4096)), Some((linux::CallGraph::Dwarf, Some(4096))));
        assert_eq!(applied(CallGraph::Fp, None), Some((linux::CallGraph::FramePointers, None)));
        assert_eq!(applied(CallGraph::Fp, Some(4096)), None);
        assert_eq!(applied(CallGraph::None, Some(4096)), None);
    }
}
