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

/// The time in nanoseconds since the machine was started, suspended or not, as `/proc` tells this process when others were.
pub(crate) fn boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// The CPU time in nanoseconds that all threads of a process have used so far, those that have ended included; `None` where there is
/// none of that number. It takes no permission.
pub(crate) fn process_cpu_ns(pid: u32) -> Option<u64> {
    /// The number of a process's clock (`CPUCLOCK_SCHED` of `MAKE_PROCESS_CPUCLOCK` in Linux's
    /// `include/linux/posix-timers_types.h`, what clock_getcpuclockid(3) makes).
    const SCHED: libc::clockid_t = 2;
    /// Above all numbers of processes (`PID_MAX_LIMIT`), which would be other clocks'.
    const NO_PID: u32 = 1 << 22;
    if pid == 0 || pid > NO_PID {
        return None;
    }
    let clock = (!pid.cast_signed() << 3) | SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to. The clock of a process that is not there is an error.
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
