//! The messages about a recording that has ended.

mod advice;
mod cpu_quota;
mod events;
mod recording;
mod waits;

#[cfg(target_os = "linux")]
pub(crate) use events::dropped as dropped_events;

pub(crate) use recording::{RunReport, SummarizedRecording, has_kernel_not_permitted, print};
