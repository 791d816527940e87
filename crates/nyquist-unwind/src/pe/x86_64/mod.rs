//! The unwind information of images for 64-bit x86 ("x64 exception handling").

mod epilogue;
mod frame;
mod functions;
mod info;
mod step;

pub(super) use functions::{X64FrameUndo, X64Functions, compile};
