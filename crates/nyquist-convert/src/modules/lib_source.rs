//! Where the code and the symbols of a lib come from.

use crate::jit::symbols::JitSymbols;
use nyquist_object::Avma;
use nyquist_perf::PerfMap;
use nyquist_symbols::ModuleRequest;
use std::sync::Arc;

/// Where the code and the symbols of a lib come from.
#[derive(Clone, Debug)]
pub enum LibSource {
    /// A file, and how to find it and its debug files.
    File(ModuleRequest),
    /// An image that is no file: the vDSO, or the part of a file that is in memory.
    Image(Arc<Vec<u8>>),
    /// The kernel or one of its modules.
    Kernel {
        /// The base of its relative addresses.
        base: Avma,
        /// The names of code that was removed since, by its addresses in memory.
        gone: Arc<PerfMap>,
    },
    /// Code that was generated at run time, with its compiler's description.
    Jit(JitSymbols),
    /// Only the name of the file is known.
    Unknown,
}
