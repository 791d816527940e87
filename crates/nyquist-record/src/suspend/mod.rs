//! Sampling by suspending threads, for systems that have no better way. Only what a [`system::System`] does
//! differs between them.

mod cpu_clock;
mod family;
mod images;
mod life;
mod look;
#[cfg(windows)]
pub(crate) mod recording;
mod sampler;
#[cfg(test)]
mod simulated;
pub(crate) mod system;
mod task;
#[cfg(test)]
mod tests;

#[cfg(windows)]
pub(crate) use look::LARGEST_COPY;
#[cfg(windows)]
pub(crate) use sampler::{End, LeftOut, Plan};
