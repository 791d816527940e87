//! The decode stage: what the kernel and profiled programs have written becomes events.

pub mod marker_file;
mod marker_schema;
pub mod marker_text;
pub mod perf;
