//! Recording backends: what the operating system's sampling interfaces give, as event records.
//!
//! A backend samples a process that was launched for it ([`linux::launch`]) or attaches to one that runs, and
//! hands out [`Chunk`]s, which are decoded into the event model of `nyquist-convert` on the thread that asks
//! for them.

mod chunk;
#[cfg(target_os = "linux")]
pub mod linux;

pub use chunk::{Chunk, Source};
