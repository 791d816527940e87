//! What became of the profiles, for messages.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of pieces: files, and requests with their contents.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) lost: AtomicU64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} files written, {} profiles sent in {} bytes, {} retries, {} lost",
            of(&self.written),
            of(&self.sent),
            of(&self.bytes),
            of(&self.retried),
            of(&self.lost)
        )
    }
}
