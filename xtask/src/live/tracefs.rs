//! The file system of tracepoints, which systemd mounts. A bare machine has not got it until a program like perf mounts it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Where it belongs.
const TRACING: &str = "/sys/kernel/tracing";

/// Mounts it where it can be mounted and is not. Tests of tracepoints are skipped where it stays away.
pub(super) fn mount() {
    let folder = Path::new(TRACING);
    if crate::sys::is_root() && folder.exists() && !folder.join("events").exists() {
        let _ =
            Command::new("mount").args(["-t", "tracefs", "tracing", TRACING]).stderr(Stdio::null()).status();
    }
}
