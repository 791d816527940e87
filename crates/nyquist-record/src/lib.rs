//! Recording backends: the output of the operating system's sampling interfaces, as event records.
//!
//! A backend samples a process that was launched for it (`launch`) or attaches to a running one. It returns
//! [`Chunk`]s, which the receiving thread decodes into the event model of `nyquist-convert`. Each system has a
//! module with the same names where they mean the same.

mod chunk;
mod cpu_list;
#[cfg(any(target_os = "linux", windows))]
mod end_reason;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(any(target_os = "linux", windows))]
mod out;
#[cfg(any(target_os = "linux", windows))]
mod pace;
#[cfg(any(target_os = "linux", windows))]
mod pool;
#[cfg(any(target_os = "linux", windows))]
mod random;
#[cfg(any(test, windows))]
mod suspend;
#[cfg(windows)]
pub mod windows;

pub use chunk::{Chunk, Source};
pub use cpu_list::parse_cpu_list;
#[cfg(any(target_os = "linux", windows))]
pub use pace::HoldSummary;
