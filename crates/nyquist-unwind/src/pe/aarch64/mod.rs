//! The unwind information of images for 64-bit ARM ("ARM64 exception handling").
//!
//! A code stands for one instruction of a prologue or an epilogue, all of which take four bytes. So the codes from one on say what
//! is left to be undone at its instruction, and no code has to be read.

mod codes;
mod frame;
mod functions;
mod packed;
mod record;
mod step;

pub(super) use functions::{Functions, Undo, compile};
