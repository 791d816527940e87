//! The profiles of V8: of the CPU (`.cpuprofile`, also in its old form), of the heap (`.heapprofile`), and its log.

pub(crate) mod heap;
pub(crate) mod log;
pub(crate) mod old;
mod read;
mod samples;
mod tree;

pub use heap::read as read_heap;
pub use log::read as read_log;
pub use old::read as read_old;
pub use read::read;
pub(crate) use samples::{CpuProfileSamples, signed_step};
pub(crate) use tree::{Node, Tree};
