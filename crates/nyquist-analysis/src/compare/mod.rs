//! Comparisons: of recordings with each other, and of one event with another.

pub(crate) mod diff;
pub(crate) mod flame_change;
pub(crate) mod line_ratios;
pub(crate) mod observations;
pub(crate) mod ratio;
pub(crate) mod runs;
pub(crate) mod statistics;
