//! The intern stage: the tables of the profile, which are frames, stacks, rows and markers. Each entry is
//! made once.

mod allocations;
mod condense;
mod counters;
mod cpus;
mod evict;
pub(crate) mod finish;
mod gap_markers;
mod gaps;
pub(crate) mod intern;
pub(crate) mod marker_kinds;
pub(crate) mod markers;
mod occurrences;
mod profile_time;
mod row_names;
mod row_pool;
mod rows;
mod sample_frame;
pub(crate) mod sample_row;
pub(crate) mod seen_addresses;
pub(crate) mod sink;
mod spooling;
mod stack_table;
#[cfg(test)]
mod test_events;
pub(crate) mod unnamed;
mod waits;
