//! Resources of the machine for a task: a budget of memory, and threads.

#![forbid(unsafe_code)]

mod budget;
mod threads;

pub use budget::{Budget, Charge};
pub use threads::{cpu_count, join, on_threads, spawn_helper};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
