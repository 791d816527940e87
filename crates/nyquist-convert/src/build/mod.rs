//! The tables of the profile: frames, stacks, rows and markers, each made once.

pub(crate) mod condense;
pub(crate) mod cpus;
pub(crate) mod evict;
pub(crate) mod intern;
pub(crate) mod markers;
pub(crate) mod row_names;
pub(crate) mod row_pool;
pub(crate) mod unnamed;
