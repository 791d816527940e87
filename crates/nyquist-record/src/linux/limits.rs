//! The limits of this process: descriptors, locked memory, rate.

use std::sync::OnceLock;
use std::{fs, thread};

use super::namespaces;
use super::sys::limits::{Limit, descriptors, locked_memory, set_descriptors};
use super::sys::process::Preference;

static ORIGINAL_DESCRIPTORS: OnceLock<Limit> = OnceLock::new();

/// Raises this process's descriptor limit to the hard limit. The command gets the original limit: programs
/// that use select(2) or close all descriptors depend on it.
pub(crate) fn raise_descriptor_limit() {
    let Ok(limit) = descriptors() else { return };
    ORIGINAL_DESCRIPTORS.get_or_init(|| limit);
    // If it cannot be raised, the current limit takes effect later.
    let _ = set_descriptors(Limit { soft: limit.hard, ..limit });
}

/// The limit before it was raised; `None` if it was not raised.
pub(crate) fn original_descriptor_limit() -> Option<Limit> {
    ORIGINAL_DESCRIPTORS.get().copied()
}

/// The current descriptor limit of this process.
pub(crate) fn descriptor_limit() -> u64 {
    descriptors().map_or(1024, |limit| limit.soft)
}

/// A number in `/proc/sys/kernel`; `None` if it cannot be read.
pub(crate) fn kernel_setting(name: &str) -> Option<i64> {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

/// The bytes of ring buffers that a process without privileges can map: `perf_event_mlock_kb` for every
/// online CPU, plus RLIMIT_MEMLOCK.
pub(crate) fn ring_bytes_without_privileges(cpus: usize) -> u64 {
    let kb = kernel_setting("perf_event_mlock_kb").and_then(|kb| u64::try_from(kb).ok()).unwrap_or(516);
    let locked = locked_memory().map_or(0, |limit| limit.soft);
    kb.saturating_mul(1024).saturating_mul(cpus as u64).saturating_add(locked)
}

const CAP_IPC_LOCK: u32 = 14;

/// Whether ring buffers are not limited: as root, with CAP_IPC_LOCK, or at paranoid -1.
pub(crate) fn rings_are_unlimited() -> bool {
    has_capability(CAP_IPC_LOCK) || kernel_setting("perf_event_paranoid").is_some_and(|level| level < 0)
}

/// Whether a thread of this process may have a real-time priority: as root, with `CAP_SYS_NICE`, or within
/// `RLIMIT_RTPRIO`. Control groups and a container's filter can still refuse it, so this function tries it.
/// It uses a temporary thread, because within `RLIMIT_RTPRIO` a thread could not give the priority up.
pub(crate) fn real_time_is_permitted() -> bool {
    thread::scope(|scope| {
        let attempt = thread::Builder::new().spawn_scoped(scope, || Preference::at_once().is_real_time());
        attempt.ok().and_then(|attempt| attempt.join().ok()).unwrap_or(false)
    })
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// Whether this process has the privilege to sample everything, rather than because every user may.
pub(crate) fn may_see_everything() -> bool {
    has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN)
}

/// Whether this process may record tracepoints with their fields (`perf_event_paranoid` in Linux's
/// `Documentation/admin-guide/sysctl/kernel.rst`).
pub(crate) fn tracepoints_are_permitted() -> bool {
    may_see_everything() || kernel_setting("perf_event_paranoid").is_some_and(|level| level < 0)
}

/// Whether a capability is effective (`CapEff` of `/proc/thread-self/status`), which depends on the thread.
/// In its own user namespace, a process has all capabilities within the namespace, and none for the rest of
/// the machine.
pub(crate) fn has_capability(number: u32) -> bool {
    if !namespaces::is_first_of_users() {
        return false;
    }
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << number) != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Machines without util-linux have no `chrt`. There, root with all capabilities is permitted.
    #[test]
    fn real_time_is_permitted_as_for_other_programs() {
        const CAP_SYS_NICE: u32 = 23;
        let others = Command::new("chrt").args(["--fifo", "1", "true"]).status();
        let is_permitted = others.map_or_else(|_| has_capability(CAP_SYS_NICE), |status| status.success());
        assert_eq!(real_time_is_permitted(), is_permitted);
    }

    /// The 41st field of `stat` is the policy (proc_pid_stat(5)), which is 0 unless it was changed.
    #[test]
    fn whoever_asks_for_real_time_does_not_get_it() {
        let requested = || {
            real_time_is_permitted();
            fs::read_to_string("/proc/thread-self/stat").unwrap()
        };
        let stat = thread::spawn(requested).join().unwrap();
        // The second field is a name in parentheses, which may contain spaces.
        let policy = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(41 - 3));
        assert_eq!(policy, Some("0"), "{stat}");
    }
}
