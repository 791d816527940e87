//! The clocks of the system.

use std::fs;
use std::sync::OnceLock;

/// The time in nanoseconds of CLOCK_MONOTONIC as the kernel itself and the first time namespace count it: perf's records have this
/// time wherever the recorder runs.
pub(crate) fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).saturating_add_signed(own_offset_ns().saturating_neg())
}

/// What a time of `monotonic_ns` is by this process's own CLOCK_MONOTONIC, which timers go by.
pub(crate) fn own_monotonic_ns(time_ns: u64) -> u64 {
    time_ns.saturating_add_signed(own_offset_ns())
}

/// How far a process's CLOCK_MONOTONIC is ahead of `monotonic_ns`. One that has ended is taken to be in this process's namespace.
pub(crate) fn ahead_ns(pid: u32) -> i64 {
    offset_ns(&pid.to_string()).unwrap_or_else(own_offset_ns)
}

fn own_offset_ns() -> i64 {
    static OFFSET: OnceLock<i64> = OnceLock::new();
    *OFFSET.get_or_init(|| offset_ns("self").unwrap_or_default())
}

/// How far a process's CLOCK_MONOTONIC is ahead of the first time namespace's. A kernel without time namespaces has no file that says
/// so.
fn offset_ns(process: &str) -> Option<i64> {
    let link = |name: &str| fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
    // The file tells of the namespace that children are born in.
    let is_own = link("time")? == link("time_for_children")?;
    let text = fs::read_to_string(format!("/proc/{process}/timens_offsets")).ok().filter(|_| is_own)?;
    monotonic_offset_ns(&text)
}

/// The offset of CLOCK_MONOTONIC among the lines `CLOCK SECONDS NANOSECONDS`.
fn monotonic_offset_ns(text: &str) -> Option<i64> {
    let mut words = text.lines().find(|line| line.starts_with("monotonic"))?.split_whitespace().skip(1);
    let (seconds, ns): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// The CPU time in nanoseconds that the calling thread has used.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to; the clocks above exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
