//! The clock of all events: the performance counter, in nanoseconds.

use std::sync::OnceLock;

use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The current time in nanoseconds. It never goes back.
pub(crate) fn monotonic_ns() -> u64 {
    let mut count = 0;
    // SAFETY: `count` lives through the call. The call cannot fail on any supported system.
    unsafe { QueryPerformanceCounter(&raw mut count) };
    to_ns(u64::try_from(count).unwrap_or_default(), frequency())
}

/// Counts per second, which never change while the system runs.
pub(crate) fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let mut frequency = 0;
        // SAFETY: `frequency` lives through the call. The call cannot fail on any supported system.
        unsafe { QueryPerformanceFrequency(&raw mut frequency) };
        u64::try_from(frequency).unwrap_or_default().max(1)
    })
}

/// Converts counts without a product that overflows.
fn to_ns(count: u64, frequency: u64) -> u64 {
    let (seconds, rest) = (count / frequency, count % frequency);
    seconds * NS_PER_SECOND + rest * NS_PER_SECOND / frequency
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_nanoseconds() {
        assert_eq!(to_ns(25, 10), 2_500_000_000);
        assert_eq!(to_ns(u64::from(u32::MAX) * 10_000_000, 10_000_000), u64::from(u32::MAX) * NS_PER_SECOND);
        let (one, other) = (monotonic_ns(), monotonic_ns());
        assert!(one <= other && one > 0);
    }
}
