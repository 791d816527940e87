//! The file system of tracepoints. systemd mounts it; on a machine without systemd, a program like perf does.

use std::path::Path;
use std::process::{Command, Stdio};

/// The usual mount point.
const TRACING: &str = "/sys/kernel/tracing";

/// Mounts it if it is missing and can be mounted. If it stays missing, tests of tracepoints are skipped.
pub(crate) fn mount() {
    let folder = Path::new(TRACING);
    if crate::sys::is_root() && folder.exists() && !folder.join("events").exists() {
        let _ =
            Command::new("mount").args(["-t", "tracefs", "tracing", TRACING]).stderr(Stdio::null()).status();
    }
}
