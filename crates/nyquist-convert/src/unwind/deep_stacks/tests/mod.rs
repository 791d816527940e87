//! Tests of the mechanism as a part of the converter.

// Its program is a file in memory.
#[cfg(target_os = "linux")]
mod completing;
mod feedback;
