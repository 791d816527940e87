//! `platforms`: the command and its libraries are compiled, linked and linted for other systems than Linux, and run
//! where that is possible.

mod command;
mod lints;
mod macos;
mod made_up;
mod windows;
mod wine;

pub(crate) use lints::{macos as macos_lints, windows as windows_lints};
pub(crate) use macos::run as macos;
pub(crate) use windows::run as windows;
pub(crate) use wine::environment as wine_environment;

use std::path::PathBuf;

/// All that the command consists of.
const COMMAND: &str = "--package=nyquist";

/// The folder that is built into. What runs while something is built is the same for all systems.
fn folder() -> PathBuf {
    crate::paths::target().join("platforms")
}
