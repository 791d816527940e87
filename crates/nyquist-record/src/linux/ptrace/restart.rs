//! System calls that a stop of ours has ended with `EINTR`, and that are made again as if nothing had happened.
//!
//! The kernel restarts most of them by itself. Those that it does not (`epoll_wait`, `rt_sigtimedwait`, `io_getevents`
//! and others of signal(7)'s list) return `EINTR` to a program that nobody has sent a signal.

use std::fs;

use crate::linux::arch::calls;
use crate::linux::arch::registers::Stopped;

/// Signals of a process, as sets of bits.
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
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?)
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

    /// Whether a signal would do nothing at all, and without a tracer would not even have been queued.
    pub(crate) fn ignores(&self, signal: i32) -> bool {
        let by_default = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
        let caught = self.caught & bit(signal) != 0;
        self.ignored & bit(signal) != 0 || (by_default.contains(&signal) && !caught)
    }

    /// Whether a signal waits that will be acted on.
    fn any_to_act_on(&self) -> bool {
        let waiting = self.pending & !self.blocked;
        (1..=64).any(|signal| waiting & bit(signal) != 0 && !self.ignores(signal))
    }
}

fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or_default()
}

/// How much longer than it has asked for a thread may wait where its timeout cannot be made shorter.
const MOST_WAITED_TWICE_NS: u64 = 10_000_000;

/// Makes a system call again that has just ended with `EINTR`, where no signal is the reason: changes the registers,
/// and says whether it did. `waited_ns` is for how long the call had waited, as far as that is known; `epoll` is the descriptor by
/// which the thread can wait for events, where there is just one.
pub(crate) fn repeat_interrupted_call(
    stopped: &mut Stopped,
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
    } else if waited_ns > MOST_WAITED_TWICE_NS {
        // It may have a timeout that lies in memory, which is not ours to change.
        return false;
    }
    stopped.repeat_call(|| if waits_for_events { epoll() } else { None })
}

/// The most descriptors that are looked at while a thread is held.
const MOST_DESCRIPTORS: usize = 256;

/// The descriptor by which a thread can wait for events, if there is just one. `None` also where it has very many descriptors.
pub(crate) fn only_epoll_descriptor(pid: u32, tid: u32) -> Option<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/task/{tid}/fd")).ok()?.flatten();
    let entries: Vec<fs::DirEntry> = entries.take(MOST_DESCRIPTORS + 1).collect();
    if entries.len() > MOST_DESCRIPTORS {
        return None;
    }
    let is_epoll = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == "anon_inode:[eventpoll]")
    };
    let epolls = entries.iter().filter(|entry| is_epoll(entry));
    let mut found = epolls.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    found.next().filter(|_| found.next().is_none())
}

/// What may lie between the begin of a call and the look that has seen it.
const UNCERTAINTY_MS: i32 = 20;
/// A call that has waited for less has begun where it is known to.
const DOUBTFUL_MS: i32 = 5;

/// What is left of a timeout in milliseconds, which is negative where the call waits for ever. A call that seems to have
/// waited for longer is another one than the one that was seen to begin.
fn timeout_left(milliseconds: u64, waited_ns: u64) -> u64 {
    let timeout = milliseconds as i32;
    if timeout <= 0 {
        return milliseconds;
    }
    let waited = i32::try_from(waited_ns / 1_000_000).unwrap_or(i32::MAX);
    // It may have ended meanwhile, and been made again by the program: its begin is known to a few milliseconds only.
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

    /// `epoll_wait` that ends with `EINTR`, and how much is left of its timeout where it is made again.
    fn check(signals: Signals, timeout: i64, waited_ms: u64, expected: Option<i64>) {
        let mut stopped = Stopped::leaving(libc::SYS_epoll_pwait, -4);
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
        let stopped = Stopped::leaving(libc::SYS_rt_sigtimedwait, -4);
        let again = |waited_ns| {
            repeat_interrupted_call(&mut stopped.clone(), &Signals::default(), waited_ns, || Some(5))
        };
        // Of calls by other things than a descriptor, the first argument is found nowhere.
        assert_eq!([again(1_000), again(MOST_WAITED_TWICE_NS + 1)], [KEEP_ARGUMENTS, false]);
    }
}
