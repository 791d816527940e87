//! The memory that this process may have, and its limit.

pub(crate) use super::sys::{DataLimit, hold, lift, physical as available};

/// Large blocks are mappings of their own here, always.
pub(crate) fn map_large_blocks() {}
