//! The clocks of the system.

use nyquist_convert::time_namespace::own_ahead_ns;

/// The time of CLOCK_MONOTONIC in nanoseconds, as in the kernel and in the initial time namespace. Perf
/// records have this time in whatever namespace the recorder runs.
pub(crate) fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).saturating_add_signed(own_ahead_ns().saturating_neg())
}

/// Converts a time of `monotonic_ns` to this process's own CLOCK_MONOTONIC, which timers use.
pub(crate) fn own_monotonic_ns(time_ns: u64) -> u64 {
    time_ns.saturating_add_signed(own_ahead_ns())
}

/// The CPU time in nanoseconds that the calling thread has used.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time in nanoseconds since boot, including suspend. Start times of processes in this process's `/proc`
/// are relative to this clock.
pub(crate) fn boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// The CPU time of all threads of a process in nanoseconds, including those that have ended; `None` if no
/// process has that pid. It needs no permission.
pub(crate) fn process_cpu_ns(pid: u32) -> Option<u64> {
    /// The number of a process's clock (`CPUCLOCK_SCHED` of `MAKE_PROCESS_CPUCLOCK` in Linux's
    /// `include/linux/posix-timers_types.h`, which clock_getcpuclockid(3) returns).
    const SCHED: libc::clockid_t = 2;
    /// Above all pids (`PID_MAX_LIMIT`). Larger numbers would select other clocks.
    const NO_PID: u32 = 1 << 22;
    if pid == 0 || pid > NO_PID {
        return None;
    }
    let clock = (!pid.cast_signed() << 3) | SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to. The clock of a nonexistent process is an
    // error.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    read.then(|| nanoseconds(time))
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to; the clocks above exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanoseconds(time)
}

fn nanoseconds(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_all_its_threads() {
        let own = std::process::id();
        let before = process_cpu_ns(own).unwrap();
        let used = std::thread::spawn(|| {
            while thread_cpu_ns() < 20_000_000 {}
            thread_cpu_ns()
        });
        let used = used.join().unwrap();
        let found = process_cpu_ns(own).unwrap() - before;
        assert!(found >= used, "{found} of {used}");
        assert_eq!([0, u32::MAX >> 1, u32::MAX].map(process_cpu_ns), [None; 3]);
    }
}
