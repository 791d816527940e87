//! The sums of blocks that are counted together.

use crate::event::Timestamp;
use nyquist_profile::{StackId, ThreadIndex};
use std::ops::{AddAssign, SubAssign};

/// Bytes and blocks. Estimates, where blocks are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) bytes: f64,
    pub(crate) blocks: f64,
}

impl Amount {
    /// What a sampled block stands for. One byte is added to each size, so that blocks of no bytes are sampled, too.
    pub(crate) fn of_block(size: u64, distance: u64) -> Self {
        let size = size as f64;
        let chance = if distance > 1 { -(-(size + 1.0) / distance as f64).exp_m1() } else { 1.0 };
        Self { bytes: size / chance, blocks: 1.0 / chance }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.blocks += other.blocks;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        // Sums of numbers that are not whole may miss zero by a little.
        let less = |a: f64, b: f64| if (a - b) < 1e-6 * b { 0.0 } else { a - b };
        self.bytes = less(self.bytes, other.bytes);
        self.blocks = less(self.blocks, other.blocks);
    }
}

/// What is known of blocks that one thread has allocated at one stack, about the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocatedGroup {
    pub(crate) row: ThreadIndex,
    pub(crate) stack: Option<StackId>,
    pub(crate) first: Timestamp,
    /// When the last one was freed, if all were.
    pub(crate) end: Option<Timestamp>,
    pub(crate) distance: u64,
    pub(crate) total: Amount,
    pub(crate) live: Amount,
    pub(crate) peak: Amount,
    pub(crate) temporary: Amount,
}

/// The sums of a group of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeapSums {
    pub(crate) total: Amount,
    pub(crate) live: Amount,
    /// What was live at the heap's last peak that `peaks` counts.
    pub(crate) peak: Amount,
    /// Blocks that were freed before the next allocation of their thread.
    pub(crate) temporary: Amount,
    /// How many peaks the heap had when the group was last changed.
    peaks: u64,
}

impl HeapSums {
    /// No blocks, in a heap that has had as many peaks.
    pub(crate) fn new(peaks: u64) -> Self {
        Self { peaks, ..Self::default() }
    }

    /// Notes what was live at the heap's last peak. Nothing has changed since.
    pub(crate) fn settle(&mut self, peaks: u64) {
        if self.peaks != peaks {
            self.peak = self.live;
            self.peaks = peaks;
        }
    }

    /// Adds a block. `peaks` counts the heap's peaks before it.
    pub(crate) fn add(&mut self, amount: Amount, peaks: u64) {
        self.settle(peaks);
        self.total += amount;
        self.live += amount;
    }

    /// Adds a block of which nobody will know when it is freed.
    pub(crate) fn add_unfollowed(&mut self, amount: Amount, peaks: u64) {
        self.settle(peaks);
        self.total += amount;
    }

    /// Removes a block that was freed, and was allocated before the time from which allocations count.
    pub(crate) fn release(&mut self, amount: Amount, peaks: u64) {
        self.settle(peaks);
        self.live -= amount;
    }

    /// Forgets everything but what is live, with all settled.
    pub(crate) fn forget_past(&mut self) {
        (self.total, self.temporary) = (Amount::default(), Amount::default());
        self.peak = self.live;
    }

    /// Removes a block that was freed, and was or was not there at the last peak.
    pub(crate) fn remove(&mut self, amount: Amount, peaks: u64, was_at_peak: bool) {
        self.settle(peaks);
        self.total -= amount;
        self.live -= amount;
        if was_at_peak {
            self.peak -= amount;
        }
    }

    /// Adds a block that was removed from another group.
    pub(crate) fn add_ended(&mut self, amount: Amount, peaks: u64, was_at_peak: bool, is_temporary: bool) {
        self.settle(peaks);
        self.total += amount;
        if was_at_peak {
            self.peak += amount;
        }
        if is_temporary {
            self.temporary += amount;
        }
    }

    /// Adds the sums of another group, with both settled.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.total += other.total;
        self.live += other.live;
        self.peak += other.peak;
        self.temporary += other.temporary;
    }
}
