//! Sampling by suspending threads, for systems that have no better way. Only what a [`system::System`] does
//! differs between them.

mod cpu_clock;
mod family;
mod images;
mod life;
mod look;
pub(crate) mod recording;
mod sampler;
pub(crate) mod system;
mod task;

pub(crate) use look::LARGEST_COPY;
pub(crate) use sampler::{End, LeftOut, Plan};
