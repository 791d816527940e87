//! Gives programs of a test the toolchain of the user who runs the tests.

use std::path::{Path, PathBuf};

use super::context::Context;
use super::invocation::Invocation;

/// Uses the toolchain and the packages of the user who runs the tests, and puts the tested `nyquist` first in
/// PATH.
pub(crate) fn with_tool_chain<'a>(test: &'a Context<'a>, call: Invocation<'a>) -> Invocation<'a> {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let folder = |name: &str, default: &str| {
        std::env::var_os(name).map_or_else(|| home.join(default), PathBuf::from).display().to_string()
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = test.nyquist_path().parent().unwrap_or(Path::new("/"));
    call.env("CARGO_HOME", folder("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", folder("RUSTUP_HOME", ".rustup"))
        .env("PATH", format!("{}:{path}", programs.display()))
}
