//! The unwind information of PE images for 64-bit x86: a table of functions, and for each what its prologue does.
//!
//! Formats and rules are those of Microsoft's "x64 exception handling", by the section that is named where they are
//! used.

mod epilogue;
mod frame;
mod functions;
mod image;
mod info;
mod step;

pub(crate) use functions::{Compiled, Functions, compile};
