//! Programs whose files give them privileges. The kernel withholds these from a traced program if the tracer
//! could not have them itself (ptrace(2); `security/commoncap.c`, `nonroot_raised_pE` and `ptracer_capable`).

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::limits::has_capability;
use super::sys::files::{has_capabilities, is_on_nosuid};
use nyquist_system::read_kernel_text;

const CAP_SYS_PTRACE: u32 = 19;

/// Whether programs that this process traces get the privileges that their files give, and it may trace
/// processes of other users.
pub fn are_kept_under_ptrace() -> bool {
    has_capability(CAP_SYS_PTRACE)
}

/// The program that will be run, if it would gain privileges and this process could not trace it with them.
pub(crate) fn lost_under_ptrace(candidates: &[CString]) -> Option<PathBuf> {
    let program = candidates.iter().find(|candidate| is_executable(&path(candidate)))?;
    (gives_any(program) && !are_kept_under_ptrace()).then(|| path(program))
}

/// Whether a user who runs a program's file gains privileges by that, so that its loader preloads nothing.
pub(crate) fn gains_any(program: &CStr, user: u32) -> bool {
    if !gives_any(program) {
        return false;
    }
    let file = fs::metadata(path(program)).ok();
    let is_other = |file: &fs::Metadata| sets_user(file.mode()) && file.uid() != user;
    let has_group = |file: &fs::Metadata| sets_group(file.mode());
    let gains_capabilities = user != 0 && has_capabilities(program);
    gains_capabilities || file.is_none_or(|file| is_other(&file) || has_group(&file))
}

/// The program of a process that has just called exec under a tracer, if its file gives privileges that the
/// process did not get.
pub(crate) fn were_lost(pid: u32) -> Option<PathBuf> {
    let exe = CString::new(format!("/proc/{pid}/exe")).ok()?;
    if !gives_any(&exe) {
        return None;
    }
    let file = fs::metadata(path(&exe)).ok()?;
    let got = ProcessCredentials::parse(&read_kernel_text(format!("/proc/{pid}/status")).ok()?)?;
    got.lacks(file.mode(), (file.uid(), file.gid()), has_capabilities(&exe)).then_some(())?;
    fs::read_link(path(&exe)).ok()
}

/// The rights of a process, from its `status` (proc_pid_status(5)).
#[derive(Debug, PartialEq, Eq)]
struct ProcessCredentials {
    /// The effective user and group.
    user: u32,
    group: u32,
    /// Its permitted capabilities, as bits.
    capabilities: u64,
    /// Whether it cannot gain privileges by exec (`PR_SET_NO_NEW_PRIVS`), so that a tracer withholds none.
    gains_none: bool,
}

impl ProcessCredentials {
    fn parse(status: &str) -> Option<Self> {
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        let effective = |name: &str| value(name)?.split('\t').nth(1)?.parse().ok();
        Some(Self {
            user: effective("Uid")?,
            group: effective("Gid")?,
            capabilities: u64::from_str_radix(value("CapPrm")?, 16).ok()?,
            gains_none: value("NoNewPrivs") == Some("1"),
        })
    }

    /// Whether a program's file with that mode, user and group gives privileges that the process lacks.
    fn lacks(&self, mode: u32, (user, group): (u32, u32), has_capabilities: bool) -> bool {
        let lacks_user = sets_user(mode) && user != self.user;
        let lacks_group = sets_group(mode) && group != self.group;
        let lacks_capabilities = has_capabilities && self.capabilities == 0;
        !self.gains_none && (lacks_user || lacks_group || lacks_capabilities)
    }
}

fn path(program: &CStr) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(program.to_bytes()))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map_or(0, |metadata| metadata.permissions().mode())
}

fn is_executable(path: &Path) -> bool {
    mode(path) & 0o111 != 0
}

/// Whether a program's file gives privileges when it is run.
fn gives_any(program: &CStr) -> bool {
    is_marked(program) && !is_on_nosuid(program)
}

/// Whether the file is marked to give privileges, regardless of its mount.
fn is_marked(program: &CStr) -> bool {
    let mode = mode(&path(program));
    sets_user(mode) || sets_group(mode) || has_capabilities(program)
}

/// Whether a program with that mode runs as its file's owner.
fn sets_user(mode: u32) -> bool {
    mode & libc::S_ISUID != 0
}

/// Whether it runs as its file's group. Without the execute bit, this bit means mandatory locking.
fn sets_group(mode: u32) -> bool {
    mode & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_gain_privileges_are_recognized() {
        let file = std::env::temp_dir().join(format!("nyquist-privileges-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let check = |mode, expected| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let name = CString::new(file.as_os_str().as_bytes()).unwrap();
            assert_eq!((is_executable(&file), is_marked(&name)), expected, "{mode:o}");
        };
        check(0o644, (false, false));
        check(0o755, (true, false));
        check(0o4755, (true, true));
        check(0o2755, (true, true));
        check(0o2745, (true, false));
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn mounts_without_privileges_are_recognized() {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        for path in ["/", "/dev", "/dev/pts", "/dev/shm", "/proc", "/run", "/sys", "/tmp"] {
            // The last mount at a path hides the others.
            let mount = mounts.lines().rev().find(|line| line.split(' ').nth(1) == Some(path));
            let Some(options) = mount.and_then(|line| line.split(' ').nth(3)) else { continue };
            let found = is_on_nosuid(&CString::new(path).unwrap());
            assert_eq!(found, options.split(',').any(|option| option == "nosuid"), "{path}: {options}");
        }
        assert!(!is_on_nosuid(c"/proc/nonexistent/file"));
    }

    const STATUS: &str =
        "Name:\tx\nUid:\t7\t8\t8\t8\nGid:\t5\t6\t6\t6\nCapPrm:\t0000000000000000\nNoNewPrivs:\t0\n";

    #[test]
    fn what_a_file_gives_and_a_process_lacks_is_lost() {
        let got = ProcessCredentials::parse(STATUS).unwrap();
        let lacks = |mode, user, group| got.lacks(mode, (user, group), false);
        assert_eq!([lacks(0o4755, 0, 0), lacks(0o4755, 8, 0), lacks(0o755, 0, 0)], [true, false, false]);
        assert_eq!([lacks(0o2755, 8, 0), lacks(0o2755, 8, 6)], [true, false]);
        assert!(got.lacks(0o755, (8, 6), true));
        let has_some = ProcessCredentials { capabilities: 1, ..ProcessCredentials::parse(STATUS).unwrap() };
        assert!(!has_some.lacks(0o755, (8, 6), true));
        let given_up = STATUS.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1");
        assert!(!ProcessCredentials::parse(&given_up).unwrap().lacks(0o4755, (0, 0), true));
        assert_eq!(ProcessCredentials::parse("Uid:\t7\n"), None);
    }
}
