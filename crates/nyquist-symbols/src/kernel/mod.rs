//! The kernel's own symbols: `/proc/kallsyms`, `/proc/modules` and the notes in `/sys/kernel/notes`, and the
//! lines and inlined calls of its debug info, if it is on this machine.

mod block_index;
mod blocks;
mod code;
mod files;
mod function_table;
mod functions;
mod image;
mod kallsyms;
mod kept;
pub(crate) mod kept_head;
mod lines;
mod lists;
mod modules;
mod running;
mod section_places;
mod symbols;

pub use code::{KernelCode, KernelCodeError};
pub use files::KernelFiles;
pub use kallsyms::{KernelError, KernelModule};
pub use kept::{read_kernel, sealed_kernel};
pub use symbols::KernelSymbols;

/// The name of the kernel's lib in profiles, as perf calls its image.
pub const KERNEL_LIB: &str = "[kernel.kallsyms]";
