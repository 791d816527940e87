//! Recording by the kernel's events: what Windows does for it.

mod machine;
pub(crate) mod recording;
mod session;

pub(crate) use recording::{EtwRecording, EtwSession};
