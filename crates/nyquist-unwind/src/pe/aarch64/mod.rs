//! The unwind information of images for 64-bit ARM ("ARM64 exception handling").
//!
//! A code stands for one instruction of a prologue or an epilogue, all of which take four bytes. So the codes
//! from an instruction's code on are those that have to be undone there, and the instructions need not be
//! read.

mod codes;
mod frame;
mod functions;
mod packed_unwind_data;
mod step;
mod xdata_record;

pub(super) use functions::{Arm64FrameUndo, Arm64Functions, compile};
