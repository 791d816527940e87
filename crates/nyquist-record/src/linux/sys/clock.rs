//! The clocks of the system.

use nyquist_convert::time_namespace::own_ahead_ns;

/// The time in nanoseconds of CLOCK_MONOTONIC as the kernel itself and the first time namespace count it: perf's records have this
/// time wherever the recorder runs.
pub(crate) fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).saturating_add_signed(own_ahead_ns().saturating_neg())
}

/// What a time of `monotonic_ns` is by this process's own CLOCK_MONOTONIC, which timers go by.
pub(crate) fn own_monotonic_ns(time_ns: u64) -> u64 {
    time_ns.saturating_add_signed(own_ahead_ns())
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
