//! Starting other programs, and where the user of this one sits.

use std::env;
use std::os::windows::process::CommandExt as _;
use std::process::Command;

/// `CREATE_NEW_PROCESS_GROUP`: the console's Ctrl-C does not reach the program.
const NEW_PROCESS_GROUP: u32 = 0x0000_0200;

/// The programs that open a link, in the order in which they are tried. `explorer` passes a link to the
/// browser that the user has chosen.
pub(crate) fn link_openers() -> Vec<String> {
    env::var("BROWSER")
        .ok()
        .filter(|name| !name.is_empty())
        .into_iter()
        .chain(["explorer".to_owned()])
        .collect()
}

/// Whether a browser would have a screen.
pub(crate) fn has_display() -> bool {
    true
}

/// Keeps the terminal's signals from a program.
pub(crate) fn detach(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP);
}

/// The value of `SSH_CONNECTION`.
pub(crate) fn ssh_connection(_is_under_sudo: bool) -> Option<String> {
    env::var("SSH_CONNECTION").ok()
}

/// The name of this machine in its network, which is not looked up on this system.
pub(crate) fn host_name() -> Option<String> {
    None
}
