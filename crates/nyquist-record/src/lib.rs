//! Recording backends: the output of the operating system's sampling interfaces, as event records.
//!
//! A backend samples a process that was launched for it ([`linux::launch`]) or attaches to a running one. It
//! returns [`Chunk`]s, which the receiving thread decodes into the event model of `nyquist-convert`.

mod chunk;
mod cpu_list;
#[cfg(target_os = "linux")]
pub mod linux;

pub use chunk::{Chunk, Source};
pub use cpu_list::parse_cpu_list;
#[cfg(target_os = "linux")]
pub use linux::ptrace::HoldSummary;
