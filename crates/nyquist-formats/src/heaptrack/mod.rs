//! heaptrack's data: allocations and frees, with their stacks.

mod plan;
mod read;
mod write;

pub(crate) use read::is_heaptrack;
pub use read::{read, read_value};
pub use write::write;
