//! callgrind's format: costs by function and line, and the costs of calls, for KCachegrind.
//!
//! It is described in <https://valgrind.org/docs/manual/cl-format.html>. cachegrind's files are the same
//! without calls. Other tools (Xdebug, `pprof -callgrind`) write it too.

mod read;
mod write;

pub use read::{read, read_value};
pub use write::write;

#[cfg(test)]
mod tests;
