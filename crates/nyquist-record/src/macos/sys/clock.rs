//! The clock of all events: the time since the system's start without its sleep, in nanoseconds.

use std::sync::OnceLock;

use super::mach::{SUCCESS, Timebase, mach_absolute_time, mach_timebase_info};

/// The current time in nanoseconds. It never goes back.
pub(crate) fn monotonic_ns() -> u64 {
    let (numer, denom) = timebase();
    to_ns(mach_absolute_time(), numer, denom)
}

/// The fraction by which counts become nanoseconds, which never changes while the system runs.
fn timebase() -> (u64, u64) {
    static TIMEBASE: OnceLock<(u64, u64)> = OnceLock::new();
    *TIMEBASE.get_or_init(|| {
        let mut base = Timebase::default();
        // SAFETY: `base` lives through the call, which fills both of its numbers.
        let status = unsafe { mach_timebase_info(&raw mut base) };
        let is_known = status == SUCCESS && base.numer != 0 && base.denom != 0;
        if is_known { (base.numer.into(), base.denom.into()) } else { (1, 1) }
    })
}

/// Converts counts without a product that overflows.
fn to_ns(count: u64, numer: u64, denom: u64) -> u64 {
    let (whole, rest) = (count / denom, count % denom);
    whole.saturating_mul(numer).saturating_add(rest * numer / denom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_nanoseconds() {
        assert_eq!(to_ns(24_000_000, 125, 3), 1_000_000_000);
        assert_eq!(to_ns(u64::MAX / 64, 125, 3), (u128::from(u64::MAX / 64) * 125 / 3) as u64);
        let (one, other) = (monotonic_ns(), monotonic_ns());
        assert!(one <= other && one > 0);
    }
}
