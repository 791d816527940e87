//! Starting other programs, and where the user of this one sits.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The programs that open a link, in the order in which they are tried. `open` passes a link to the browser that
/// the user has chosen.
pub(crate) fn link_openers() -> Vec<String> {
    let chosen = env::var("BROWSER").unwrap_or_default();
    let chosen = chosen.split(':').filter(|name| !name.is_empty()).map(str::to_owned);
    chosen.chain(["open".to_owned()]).collect()
}

/// Whether a browser would have a screen. One that is reached by ssh is elsewhere.
pub(crate) fn has_display() -> bool {
    env::var_os("SSH_CONNECTION").is_none() || env::var_os("BROWSER").is_some()
}

/// Keeps the terminal's signals from a program.
pub(crate) fn detach(command: &mut Command) {
    command.process_group(0);
}

/// The value of `SSH_CONNECTION`.
pub(crate) fn ssh_connection(_is_under_sudo: bool) -> Option<String> {
    env::var("SSH_CONNECTION").ok()
}

/// The name of this machine in its network, which is not looked up on this system.
pub(crate) fn host_name() -> Option<String> {
    None
}
