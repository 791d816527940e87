//! Restarts system calls that the tracer's stop has ended with `EINTR`, so that the program does not notice.
//!
//! The kernel restarts most of them by itself. The others (`epoll_wait`, `rt_sigtimedwait`, `io_getevents`
//! and the rest of signal(7)'s list) return `EINTR` to a program that has received no signal.

use std::fs;

use crate::linux::arch::calls;
use crate::linux::arch::registers::TracedRegisters;
use nyquist_system::read_kernel_text;

/// The signals of a process, as sets of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    pending: u64,
    blocked: u64,
    ignored: u64,
    caught: u64,
}

impl Signals {
    /// Reads the sets of a thread.
    pub(crate) fn of(pid: u32, tid: u32) -> Option<Self> {
        Self::parse(&read_kernel_text(format!("/proc/{pid}/task/{tid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let set = |name: &str| {
            let digits = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            u64::from_str_radix(digits.trim(), 16).ok()
        };
        Some(Self {
            pending: set("SigPnd")? | set("ShdPnd")?,
            blocked: set("SigBlk")?,
            ignored: set("SigIgn")?,
            caught: set("SigCgt")?,
        })
    }

    /// Whether a signal would have no effect, and without a tracer would not even have been queued.
    pub(crate) fn ignores(&self, signal: i32) -> bool {
        let by_default = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
        let caught = self.caught & bit(signal) != 0;
        self.ignored & bit(signal) != 0 || (by_default.contains(&signal) && !caught)
    }

    /// Whether a signal is pending that will have an effect.
    fn any_to_act_on(&self) -> bool {
        let waiting = self.pending & !self.blocked;
        (1..=64).any(|signal| waiting & bit(signal) != 0 && !self.ignores(signal))
    }
}

fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or_default()
}

/// How much longer than requested a thread may wait if its timeout cannot be shortened.
const MAX_WAITED_TWICE_NS: u64 = 10_000_000;

/// Restarts a system call that has just ended with `EINTR`, unless a signal is the reason. Changes the
/// registers and returns whether it did. `waited_ns` is how long the call had waited, as far as known.
/// `epoll` is the descriptor by which the thread can wait for events, if it has only one.
pub(crate) fn repeat_interrupted_call(
    stopped: &mut TracedRegisters,
    signals: &Signals,
    waited_ns: u64,
    epoll: impl FnOnce() -> Option<u64>,
) -> bool {
    let Some(number) = stopped.interrupted_call() else { return false };
    if signals.any_to_act_on() {
        return false;
    }
    let waits_for_events = calls::modern(number) == libc::SYS_epoll_pwait;
    if waits_for_events {
        let left = timeout_left(stopped.fourth_argument(), waited_ns);
        stopped.set_fourth_argument(left);
    } else if waited_ns > MAX_WAITED_TWICE_NS {
        // The call may have a timeout in memory, which must not be changed.
        return false;
    }
    stopped.repeat_call(|| if waits_for_events { epoll() } else { None })
}

/// The most descriptors that are checked while a thread is stopped.
const MAX_DESCRIPTORS: usize = 256;

/// The descriptor by which a thread can wait for events, if it has only one. `None` also if it has very many
/// descriptors.
pub(crate) fn only_epoll_descriptor(pid: u32, tid: u32) -> Option<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/task/{tid}/fd")).ok()?.flatten();
    let entries: Vec<fs::DirEntry> = entries.take(MAX_DESCRIPTORS + 1).collect();
    if entries.len() > MAX_DESCRIPTORS {
        return None;
    }
    let is_epoll = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == "anon_inode:[eventpoll]")
    };
    let epolls = entries.iter().filter(|entry| is_epoll(entry));
    let mut found = epolls.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    found.next().filter(|_| found.next().is_none())
}

/// The maximum time between the begin of a call and the reading that has noticed it.
const UNCERTAINTY_MS: i32 = 20;
/// The begin of a call that has waited for less than this is certain.
const DOUBTFUL_MS: i32 = 5;

/// The rest of a timeout in milliseconds; a negative timeout waits forever. A call that seems to have waited
/// for longer than its timeout is not the one whose begin was noticed.
fn timeout_left(milliseconds: u64, waited_ns: u64) -> u64 {
    let timeout = milliseconds as i32;
    if timeout <= 0 {
        return milliseconds;
    }
    let waited = i32::try_from(waited_ns / 1_000_000).unwrap_or(i32::MAX);
    // The call may have ended meanwhile, and the program may have repeated it: its begin is only known to a
    // few milliseconds.
    let is_doubtful = waited >= DOUBTFUL_MS && waited.saturating_add(UNCERTAINTY_MS) >= timeout;
    if waited >= timeout || is_doubtful {
        milliseconds
    } else {
        u64::from((timeout - waited).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::arch::registers::KEEP_ARGUMENTS;

    const STATUS: &str = "Name:\tx\nSigQ:\t0/1\nSigPnd:\t0000000000000002\nShdPnd:\t0000000000000100\n\
                          SigBlk:\t0000000000010000\nSigIgn:\t0000000000001000\nSigCgt:\t0000000008000002\n";

    #[test]
    fn the_sets_of_signals_are_read() {
        let expected = Signals { pending: 0x102, blocked: 0x10000, ignored: 0x1000, caught: 0x0800_0002 };
        assert_eq!(Signals::parse(STATUS), Some(expected));
        assert_eq!(Signals::parse("SigPnd:\t0\n"), None);
    }

    #[test]
    fn some_signals_do_nothing() {
        let signals =
            Signals { ignored: bit(libc::SIGPIPE), caught: bit(libc::SIGWINCH), ..Signals::default() };
        let ignored = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGURG].map(|signal| signals.ignores(signal));
        let not = [libc::SIGWINCH, libc::SIGTERM, libc::SIGRTMIN()].map(|signal| signals.ignores(signal));
        assert_eq!((ignored, not), ([true; 3], [false; 3]));
    }

    /// An `epoll_wait` that ends with `EINTR`, and the rest of its timeout if it is restarted.
    fn check(signals: Signals, timeout: i64, waited_ms: u64, expected: Option<i64>) {
        let mut stopped = TracedRegisters::leaving(libc::SYS_epoll_pwait, -4);
        stopped.set_fourth_argument(timeout.cast_unsigned());
        let waited_ns = waited_ms * 1_000_000;
        let repeated = repeat_interrupted_call(&mut stopped, &signals, waited_ns, || Some(5));
        assert_eq!(repeated.then_some(stopped.fourth_argument().cast_signed()), expected);
    }

    #[test]
    fn a_call_that_no_signal_has_ended_is_made_again() {
        let none = Signals::default();
        let pending = |signal| Signals { pending: bit(signal), ..none };
        check(none, -1, 3_000, Some(-1));
        check(none, 100, 0, Some(100));
        check(none, 100, 30, Some(70));
        check(none, 100, 200, Some(100));
        check(none, 100, 90, Some(100));
        check(none, 10, 3, Some(7));
        check(pending(libc::SIGCHLD), -1, 0, Some(-1));
        check(Signals { blocked: bit(libc::SIGTERM), ..pending(libc::SIGTERM) }, -1, 0, Some(-1));
        check(pending(libc::SIGTERM), -1, 0, None);
        check(Signals { caught: bit(libc::SIGCHLD), ..pending(libc::SIGCHLD) }, -1, 0, None);
    }

    #[test]
    fn a_timeout_in_memory_is_not_doubled() {
        let stopped = TracedRegisters::leaving(libc::SYS_rt_sigtimedwait, -4);
        let again = |waited_ns| {
            repeat_interrupted_call(&mut stopped.clone(), &Signals::default(), waited_ns, || Some(5))
        };
        // For calls without a descriptor, the first argument cannot be recovered.
        assert_eq!([again(1_000), again(MAX_WAITED_TWICE_NS + 1)], [KEEP_ARGUMENTS, false]);
    }
}
