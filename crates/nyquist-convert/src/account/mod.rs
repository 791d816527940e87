//! The account stage: which time samples stand for, and which time has no sample.

pub(crate) mod accounting;
pub(crate) mod cycle_time;
pub(crate) mod gap;
pub(crate) mod heap;
mod heap_sums;
mod heap_windows;
mod losses;
pub(crate) mod occurrence_counts;
pub(crate) mod off_cpu;
pub(crate) mod off_cpu_interval;
pub(crate) mod on_cpu;
pub(crate) mod share;
pub(crate) mod switch_reason;
mod wait_functions;
