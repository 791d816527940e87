//! Java Flight Recorder's recordings (`.jfr`), as the JDK and async-profiler write them.

mod chunk;
mod cursor;
mod measures;
mod metadata;
mod names;
mod read;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use chunk::MAGIC;
pub use read::{read, read_value};
