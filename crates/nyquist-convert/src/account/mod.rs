//! Which time samples stand for, and which time no sample stands for.

pub(crate) mod off_cpu;
pub(crate) mod on_cpu;
pub(crate) mod remainder;
pub(crate) mod statistics;
