//! Whether this process is in the machine's initial namespaces, whose numbers never change (Linux's
//! `include/linux/proc_ns.h`).

use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// `PROC_USER_INIT_INO`.
const FIRST_OF_USERS: u64 = 0xefff_fffd;
/// `PROC_PID_INIT_INO`.
const FIRST_OF_PROCESSES: u64 = 0xefff_fffc;

/// Whether its user ids and capabilities are those of the machine. If this cannot be read, returns true.
pub(crate) fn is_first_of_users() -> bool {
    number("user").is_none_or(|number| number == FIRST_OF_USERS)
}

/// Whether its pids are those of the machine.
pub(crate) fn is_first_of_processes() -> bool {
    number("pid") == Some(FIRST_OF_PROCESSES)
}

fn number(kind: &str) -> Option<u64> {
    fs::metadata(format!("/proc/self/ns/{kind}")).ok().map(|namespace| namespace.ino())
}
