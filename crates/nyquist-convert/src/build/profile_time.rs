//! Times in a profile, which count from its zero.

use crate::event::Timestamp;

/// The latest time in a profile, ten years, in ns. A file that claims more is damaged. Beyond it, floats of
/// milliseconds could not place the end of a profile later than its last sample.
const MAX_TIME_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// The time in a profile that begins at `zero`.
pub(super) fn since(zero: Timestamp, time: Timestamp) -> u64 {
    time.0.saturating_sub(zero.0).min(MAX_TIME_NS)
}
