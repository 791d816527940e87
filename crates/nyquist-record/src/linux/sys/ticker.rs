//! A timer that interrupts a thread's waits in the kernel.

use std::io;
use std::ptr;

use super::check;
use super::clock::own_monotonic_ns;

/// A timer that interrupts waits of the thread that made it.
#[derive(Debug)]
pub(crate) struct Ticker {
    timer: libc::timer_t,
}

/// The signal that ends a wait. Its handler does nothing, and no other thread receives it.
fn tick_signal() -> libc::c_int {
    libc::SIGRTMAX() - 3
}

extern "C" fn ignore_tick(_signal: libc::c_int) {}

impl Ticker {
    /// A timer for the calling thread, not started yet.
    pub(crate) fn new() -> io::Result<Self> {
        let signal = tick_signal();
        // SAFETY: zeros are a valid sigaction, sigset_t and sigevent; all live while the calls read them. The handler
        // does nothing, so it may run at any time.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore_tick as *const () as libc::sighandler_t;
            check(libc::sigaction(signal, &raw const action, ptr::null_mut()))?;
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = ptr::null_mut();
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer))?;
            Ok(Self { timer })
        }
    }

    /// Ticks at a time of `monotonic_ns`, and then after every `interval_ns`. Without the repetition, a tick
    /// that comes before the thread waits would be missed.
    pub(crate) fn set(&self, time_ns: u64, interval_ns: u64) {
        let spec = |ns: u64| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        let time_ns = own_monotonic_ns(time_ns).max(1);
        let times = libc::itimerspec { it_interval: spec(interval_ns), it_value: spec(time_ns) };
        // SAFETY: the timer lives as long as `self`, and `times` is a live itimerspec that the call only reads.
        unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &raw const times, ptr::null_mut()) };
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `new`, and nothing uses it any more.
        unsafe { libc::timer_delete(self.timer) };
    }
}
