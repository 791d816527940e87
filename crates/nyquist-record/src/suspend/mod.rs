//! Sampling by suspending threads, for systems that have no better way. Only what a [`system::System`] does
//! differs between them.

#[cfg(any(windows, target_os = "macos"))]
#[cfg_attr(windows, allow(unreachable_pub, reason = "the backend of Windows is around it"))]
pub mod backend;
mod cpu_clock;
mod events;
mod family;
mod images;
mod life;
mod made_code;
#[cfg(any(windows, target_os = "macos"))]
pub(crate) mod options;
#[cfg(any(windows, target_os = "macos"))]
pub(crate) mod outcome;
mod process;
mod recorded_thread;
#[cfg(any(windows, target_os = "macos"))]
pub(crate) mod recording;
mod refused;
mod sampler;
mod sampling;
#[cfg(test)]
mod simulated;
#[cfg(any(windows, target_os = "macos"))]
pub(crate) mod stop;
pub(crate) mod system;
#[cfg(test)]
mod tests;

#[cfg(target_os = "macos")]
use crate::macos as here;
#[cfg(windows)]
use crate::windows as here;

#[cfg(windows)]
pub(crate) use family::ProcessFamily;
#[cfg(any(windows, target_os = "macos"))]
pub(crate) use process::LeftOut;
#[cfg(any(windows, target_os = "macos"))]
pub(crate) use sampler::{SamplerResult, SamplingPlan};
#[cfg(any(windows, target_os = "macos"))]
pub(crate) use sampling::MAX_COPY_BYTES;
