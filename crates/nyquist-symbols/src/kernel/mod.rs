//! The kernel's own symbols: `/proc/kallsyms`, `/proc/modules` and the notes in `/sys/kernel/notes`, and the
//! lines and inlined calls of its debug info, if it is on this machine.

mod block_index;
mod cache_head;
mod cached_functions;
#[cfg(feature = "disassembly")]
mod code;
mod files;
mod function_cache;
mod function_table;
mod functions;
mod image;
mod kallsyms;
mod lines;
mod lists;
mod modules;
mod running;
mod section_addresses;
mod symbols;

pub(crate) use cache_head::count_functions;
#[cfg(feature = "disassembly")]
pub use code::{KernelCode, KernelCodeError};
pub use files::KernelFiles;
#[cfg(feature = "test-hooks")]
pub(crate) use function_cache::{read_kernel, sealed_kernel};
pub use kallsyms::{KernelError, KernelModule};
pub use symbols::KernelSymbols;

/// The name of the kernel's lib in profiles, as perf calls its image.
pub const KERNEL_LIB: &str = "[kernel.kallsyms]";
