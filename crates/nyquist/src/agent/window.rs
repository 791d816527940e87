//! The windows of time that profiles are of: they end at whole multiples of their length since 1970, on all hosts.

use nyquist_convert::event::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long samples may be on their way before a window is complete.
pub(super) const ON_THEIR_WAY: Duration = Duration::from_millis(1500);

/// The current window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl Window {
    /// The first window, which is shorter than the others.
    pub(super) fn first(start: Timestamp, wall: SystemTime, length: Duration) -> Self {
        Self { start, end: Timestamp(start.0 + until_boundary(wall, length)) }
    }

    /// The window after this one. If the clock was set, it has another length. After a long stop, as of a virtual
    /// machine, it ends after now.
    pub(super) fn next(self, now: Timestamp, wall: SystemTime, length: Duration) -> Self {
        let length_ns = length.as_nanos() as u64;
        let since = Duration::from_nanos(now.0.saturating_sub(self.end.0));
        let (from, wall) = match since {
            since if since > length + ON_THEIR_WAY * 4 => (now.0, wall),
            since => (self.end.0, wall.checked_sub(since).unwrap_or(wall)),
        };
        let left = until_boundary(wall, length);
        // A clock is a little off, and would make a window of nearly nothing.
        let left = if left < length_ns / 2 { left + length_ns } else { left };
        Self { start: self.end, end: Timestamp(from + left) }
    }

    /// How long it takes until it is complete.
    pub(super) fn left(self, now: Timestamp) -> Duration {
        Duration::from_nanos(self.end.0.saturating_sub(now.0)) + ON_THEIR_WAY
    }
}

/// The time to the next multiple of `length`, in ns; more than 0.
fn until_boundary(wall: SystemTime, length: Duration) -> u64 {
    let length = (length.as_nanos() as u64).max(1);
    let since = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    length - since % length
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn windows_end_at_multiples_of_their_length() {
        let length = Duration::from_secs(15);
        let wall = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let first = Window::first(Timestamp(100 * SECOND), wall(1007), length);
        assert_eq!(first.end.0, 113 * SECOND);
        let second = first.next(Timestamp(114 * SECOND), wall(1021), length);
        assert_eq!((second.start.0, second.end.0), (113 * SECOND, 128 * SECOND));
        // Handing over took longer than a window.
        let late = second.next(Timestamp(146 * SECOND), wall(1053), length);
        assert_eq!((late.start.0, late.end.0), (128 * SECOND, 143 * SECOND));
        // The clock was set forward by 4 seconds, and then back by 9.
        let third = second.next(Timestamp(129 * SECOND), wall(1040), length);
        assert_eq!((third.start.0, third.end.0), (128 * SECOND, 139 * SECOND));
        let fourth = third.next(Timestamp(140 * SECOND), wall(1042), length);
        assert_eq!((fourth.start.0, fourth.end.0), (139 * SECOND, 148 * SECOND));
        // The machine stood still.
        let fifth = fourth.next(Timestamp(1000 * SECOND), wall(1905), length);
        assert_eq!((fifth.start.0, fifth.end.0), (148 * SECOND, 1015 * SECOND));
    }
}
