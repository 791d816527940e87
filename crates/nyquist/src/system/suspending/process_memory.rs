//! The memory that this process may have, and its limit.

pub(crate) use super::sys::{DataLimit, clear_limit, set_limit};
pub(crate) use crate::system::current::physical_memory as available;

/// Large blocks are mappings of their own here, always.
pub(crate) fn map_large_blocks() {}
