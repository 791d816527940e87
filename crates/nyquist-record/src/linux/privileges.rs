//! Programs that gain privileges by their files: the kernel does not give them to a program that is traced by somebody
//! who could not have them (ptrace(2); `security/commoncap.c`, `nonroot_raised_pE` and `ptracer_capable`).

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::limits::has_capability;
use super::sys::files::has_capabilities;

const CAP_SYS_PTRACE: u32 = 19;

/// The program that will be run, if it would gain privileges and this process could not trace it with them.
pub(crate) fn lost_under_ptrace(candidates: &[CString]) -> Option<PathBuf> {
    let path = |candidate: &CStr| PathBuf::from(OsStr::from_bytes(candidate.to_bytes()));
    let program = candidates.iter().find(|candidate| is_executable(&path(candidate)))?;
    let gains = sets_user(&path(program)) || has_capabilities(program);
    (gains && !has_capability(CAP_SYS_PTRACE)).then(|| path(program))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map_or(0, |metadata| metadata.permissions().mode())
}

fn is_executable(path: &Path) -> bool {
    mode(path) & 0o111 != 0
}

/// Whether it runs as its file's owner or group.
fn sets_user(path: &Path) -> bool {
    let mode = mode(path);
    mode & libc::S_ISUID != 0 || mode & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_gain_privileges_are_told_apart() {
        let file = std::env::temp_dir().join(format!("nyquist-privileges-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        let check = |mode, expected| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let name = CString::new(file.as_os_str().as_bytes()).unwrap();
            let found = (is_executable(&file), sets_user(&file) || has_capabilities(&name));
            assert_eq!(found, expected, "{mode:o}");
        };
        check(0o644, (false, false));
        check(0o755, (true, false));
        check(0o4755, (true, true));
        check(0o2755, (true, true));
        // Without the right to execute, the bit means mandatory locking.
        check(0o2745, (true, false));
        fs::remove_file(&file).unwrap();
    }
}
