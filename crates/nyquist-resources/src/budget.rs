//! A memory limit for data from files, shared by all readers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A number of bytes of memory that are still available. Clones share them.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Amounts>);

#[derive(Debug)]
struct Amounts {
    most: u64,
    left: AtomicU64,
    was_refused: AtomicBool,
}

impl Budget {
    /// A budget of that many bytes.
    pub fn new(most: u64) -> Self {
        Self(Arc::new(Amounts { most, left: AtomicU64::new(most), was_refused: AtomicBool::new(false) }))
    }

    /// The initial number of bytes.
    pub fn most(&self) -> u64 {
        self.0.most
    }

    /// A charge of 0 bytes.
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), taken: AtomicU64::new(0) }
    }

    /// Whether that many bytes are available now. For memory that is freed immediately.
    pub fn has(&self, bytes: u64) -> bool {
        self.note(bytes <= self.0.left.load(Ordering::Relaxed))
    }

    /// Whether at any time more was requested than available.
    pub fn was_refused(&self) -> bool {
        self.0.was_refused.load(Ordering::Relaxed)
    }

    fn note(&self, is_there: bool) -> bool {
        if !is_there {
            self.0.was_refused.store(true, Ordering::Relaxed);
        }
        is_there
    }
}

/// The memory limit of this process for the contents of files.
static OF_FILES: OnceLock<Budget> = OnceLock::new();

/// Limits the memory for the contents of all files that are opened from now on, once for the whole
/// process. Later calls change nothing.
pub fn limit_files(bytes: u64) {
    let _ = OF_FILES.set(Budget::new(bytes));
}

/// The budget for the contents of files: the limit of [`limit_files`], or else no limit.
pub fn of_files() -> Budget {
    OF_FILES.get().cloned().unwrap_or_else(|| Budget::new(u64::MAX))
}

impl Default for Budget {
    /// A budget of 1 GiB, the default.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

/// The bytes that one reader uses of a budget. They are returned when this is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    taken: AtomicU64,
}

impl Charge {
    /// Charges more bytes. Returns whether they were available; otherwise nothing is charged.
    pub fn take(&self, bytes: u64) -> bool {
        let left = &self.budget.0.left;
        let taken =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok();
        if taken {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        }
        self.budget.note(taken)
    }

    /// Returns all but that many bytes.
    pub fn keep(&mut self, bytes: u64) {
        let taken = self.taken.get_mut();
        let back = taken.saturating_sub(bytes);
        self.budget.0.left.fetch_add(back, Ordering::Relaxed);
        *taken -= back;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let budget = Budget::new(10);
        let (mut first, second) = (budget.charge(), budget.clone().charge());
        assert!(first.take(8));
        assert!(budget.has(2) && !budget.was_refused());
        assert!(!budget.has(3) && budget.was_refused());
        assert!(!second.take(3));
        assert!(second.take(2));
        first.keep(5);
        assert!(second.take(3) && !second.take(1));
        drop(first);
        assert!(second.take(5) && !second.take(1));
    }
}
