//! Starting other programs, and where the user of this one sits.

use nyquist_system::read_kernel_text;
use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::Command;

/// The longest chain of calling processes that is followed: a shell, sudo, its monitor, and wrappers around them.
const MAX_CALLERS: usize = 16;

/// The most bytes of an environment that are read.
const MAX_ENVIRONMENT: u64 = 1 << 20;

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

/// The value of `SSH_CONNECTION`. sudo removes the variable, so under sudo the environments of the calling processes
/// are searched for it, too.
pub(crate) fn ssh_connection(is_under_sudo: bool) -> Option<String> {
    let own = env::var(SSH_CONNECTION).ok();
    own.or_else(|| is_under_sudo.then(|| callers().find_map(ssh_connection_of)).flatten())
}

const SSH_CONNECTION: &str = "SSH_CONNECTION";

/// The processes that called this one, the nearest first.
fn callers() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(parent_id()), |&pid| parent_of(pid)).take(MAX_CALLERS)
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = read_kernel_text(format!("/proc/{pid}/stat")).ok()?;
    parent_in(&stat).filter(|parent| *parent != 0)
}

/// The parent in a `stat` file of proc(5), whose second field is a name that may have spaces and brackets.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

fn ssh_connection_of(pid: u32) -> Option<String> {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_ENVIRONMENT).read_to_end(&mut environment).ok()?;
    variable_in(&environment, SSH_CONNECTION)
}

fn variable_in(environment: &[u8], name: &str) -> Option<String> {
    let value = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    environment.split(|&byte| byte == 0).find_map(value).and_then(|value| String::from_utf8(value).ok())
}

/// The name of this machine in its network, if it has one.
pub(crate) fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned();
    (!name.is_empty() && name != "(none)").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("12 (a) S 3) R) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a"), None);
        assert_eq!(callers().next(), Some(parent_id()));
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"A=1\0XSSH_CONNECTION=no\0SSH_CONNECTION=a 1 b 2\0";
        assert_eq!(variable_in(environment, SSH_CONNECTION).unwrap(), "a 1 b 2");
        assert_eq!(variable_in(b"SSH_CONNECTIONS=1\0", SSH_CONNECTION), None);
    }
}
