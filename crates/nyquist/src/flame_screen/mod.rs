//! A flame graph in the terminal: zoomed, searched and walked by keys and the mouse, or as plain text.

mod boxes;
mod colors;
mod draw;
mod plain;
mod state;
mod watch;

pub(crate) use boxes::FlameBoxes;
pub(crate) use plain::plain;
pub(crate) use watch::{ShownGraph, watch};

/// For the live view of `top`.
#[cfg(target_os = "linux")]
pub(crate) use {colors::ColorDepth, draw::FlamePicture, state::FlameState};
