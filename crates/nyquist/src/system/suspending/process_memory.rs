//! The memory that this process may have, and its limit.

pub(crate) use super::sys::{DataLimit, hold, lift};
pub(crate) use crate::system::current::physical_memory as available;

/// Large blocks are mappings of their own here, always.
pub(crate) fn map_large_blocks() {}
