//! Java Flight Recorder's recordings (`.jfr`) from the JDK and async-profiler.

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
