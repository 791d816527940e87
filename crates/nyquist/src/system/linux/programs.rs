//! Starting other programs.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The programs that open a link, in the order in which they are tried.
pub(crate) fn link_openers() -> Vec<String> {
    let chosen = env::var("BROWSER").unwrap_or_default();
    let chosen = chosen.split(':').filter(|name| !name.is_empty()).map(str::to_owned);
    chosen.chain(["xdg-open", "wslview"].map(str::to_owned)).collect()
}

/// Whether a browser would have a screen.
pub(crate) fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Keeps the terminal's signals from a program.
pub(crate) fn detach(command: &mut Command) {
    command.process_group(0);
}
