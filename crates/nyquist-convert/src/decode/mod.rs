//! The decode stage: records of the kernel and of profiled programs become events.

pub mod allocation_file;
pub mod marker_file;
mod marker_schema;
pub mod marker_text;
pub mod perf;
