//! Recording backends: the output of the operating system's sampling interfaces, as event records.
//!
//! A backend samples a process that was launched for it (`launch`) or attaches to a running one. It returns
//! [`Chunk`]s, which the receiving thread decodes into the event model of `nyquist-convert`. Each system has a
//! module with the same names where they mean the same.

mod chunk;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod command;
mod cpu_list;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod end_reason;
#[cfg(any(test, windows))]
#[cfg_attr(
    not(windows),
    allow(dead_code, unreachable_pub, unused_imports, reason = "the module of Windows uses it")
)]
mod etw;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(target_os = "macos")]
pub mod macos;
// Tested on every system.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod chunk_builder;
#[cfg(all(test, not(target_os = "macos")))]
#[path = "macos/pure/mod.rs"]
#[allow(unreachable_pub, reason = "other modules of that system export it")]
mod macos_pure;
#[cfg(all(test, any(target_os = "linux", target_os = "macos", windows)))]
mod own_stack_tests;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod pace;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod pool;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod random;
#[cfg(any(target_os = "macos", windows, test))]
mod recording_thread;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod request;
#[cfg(any(test, target_os = "macos", windows))]
mod suspend;
#[cfg(windows)]
pub mod windows;

pub use chunk::{Chunk, ChunkSource};
pub use cpu_list::parse_cpu_list;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub use pace::{BudgetSummary, HoldSummary};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
