//! Gives this program's file the privileges to record (capabilities(7), "File capabilities"), by setcap(8).

use crate::failure::{Failure, io_reason};
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The capabilities of the file: to sample everything, to attach to and read any process, and to see the
/// kernel's addresses. The kernel's documentation names them for perf (`admin-guide/perf-security.rst`).
pub(crate) const CAPABILITIES: &str = "cap_perfmon,cap_sys_ptrace,cap_syslog+ep";

/// The file of this program.
pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::because("cannot find the file of this program", &error))
}

/// The text to show before the change.
pub(crate) fn describe(program: &Path) -> String {
    let program = program.display();
    format!(
        "  {program}: {CAPABILITIES}\n      every user who may run this file can record every process, and so see into its memory, and see the kernel's addresses;\n      \
         to allow it to a group alone: chgrp GROUP {program} && chmod 750 {program}\n      \
         set them again after each update of the file\n"
    )
}

/// Runs setcap.
pub(crate) fn give(program: &Path) -> Result<(), Failure> {
    let setcap = find_setcap().ok_or_else(|| {
        Failure::new("setcap is not installed, and it is what gives capabilities to files")
            .hint("Debian, Ubuntu: sudo apt install libcap2-bin; Fedora, Arch: libcap; Alpine: libcap-setcap")
    })?;
    let output = Command::new(&setcap).arg(CAPABILITIES).arg(program).stdin(Stdio::null()).output();
    let output = output.map_err(|error| cannot_run(&setcap, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let failure =
        Failure::new(format!("setcap refused {}: {}", program.display(), said.lines().next().unwrap_or("")));
    Err(failure
        .hint("the file system must keep extended attributes, and the kernel know CAP_PERFMON (Linux 5.8)"))
}

fn cannot_run(setcap: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot run {}: {}", setcap.display(), io_reason(error)))
}

/// The path of setcap. It is run as root, so the system's own has priority over those in PATH.
fn find_setcap() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = ["/usr/sbin", "/sbin"].map(PathBuf::from).into_iter().chain(env::split_paths(&path));
    folders.map(|folder| folder.join("setcap")).find(|file| file.is_file())
}
