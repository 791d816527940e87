//! How far the clocks of processes are ahead of the kernel's. A time namespace has its own clocks, and the
//! kernel's records have the times of the initial namespace.

use crate::event::Pid;
use crate::targets::{ProcessFile, Targets};
use std::fs;
use std::sync::OnceLock;

/// How many nanoseconds a process's CLOCK_MONOTONIC is ahead of the times in the kernel's records. A process
/// that has ended, or does not answer, is assumed to be in our own namespace.
pub fn ahead_ns(pid: Pid, targets: &Targets) -> i64 {
    let link = |file| targets.process_file(pid, None, file).ok();
    let links = (link(ProcessFile::TimeNamespace), link(ProcessFile::ChildTimeNamespace));
    offset_ns(&pid.0.to_string(), links).unwrap_or_else(own_ahead_ns)
}

/// As [`ahead_ns`], for our own process.
pub fn own_ahead_ns() -> i64 {
    static OFFSET: OnceLock<i64> = OnceLock::new();
    let link = |name: &str| {
        Some(fs::read_link(format!("/proc/self/ns/{name}")).ok()?.into_os_string().into_encoded_bytes())
    };
    let links = || (link("time"), link("time_for_children"));
    *OFFSET.get_or_init(|| offset_ns("self", links()).unwrap_or_default())
}

/// How far a process's CLOCK_MONOTONIC is ahead of that of the initial time namespace, given the links to its
/// own time namespace and to that of its children. A kernel without time namespaces has no such files.
fn offset_ns(process: &str, (own, of_children): (Option<Vec<u8>>, Option<Vec<u8>>)) -> Option<i64> {
    // The file describes the namespace of new children.
    let is_own = own? == of_children?;
    let text = fs::read_to_string(format!("/proc/{process}/timens_offsets")).ok().filter(|_| is_own)?;
    monotonic_offset_ns(&text)
}

/// The offset of CLOCK_MONOTONIC among the lines `CLOCK SECONDS NANOSECONDS`.
fn monotonic_offset_ns(text: &str) -> Option<i64> {
    let mut fields = text.lines().find(|line| line.starts_with("monotonic"))?.split_whitespace().skip(1);
    let (seconds, ns): (i64, i64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::monotonic_offset_ns;

    #[test]
    fn the_offset_is_that_of_the_monotonic_clock() {
        let text = "monotonic          86400         5\nboottime             700         0\n";
        assert_eq!(monotonic_offset_ns(text), Some(86_400_000_000_005));
        assert_eq!(monotonic_offset_ns("monotonic  -7  0"), Some(-7_000_000_000));
        assert_eq!(monotonic_offset_ns("boottime 700 0"), None);
        assert_eq!(monotonic_offset_ns("monotonic 99999999999 0"), None, "no such time can be");
    }
}
