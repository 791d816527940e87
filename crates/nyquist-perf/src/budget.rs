//! How much memory what is read from files may take, shared by all who read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of memory that may still be taken. Clones share them.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Amounts>);

#[derive(Debug)]
struct Amounts {
    most: u64,
    left: AtomicU64,
}

impl Budget {
    /// A budget of that many bytes.
    pub fn new(most: u64) -> Self {
        Self(Arc::new(Amounts { most, left: AtomicU64::new(most) }))
    }

    /// How many bytes there were in the beginning.
    pub fn most(&self) -> u64 {
        self.0.most
    }

    /// Nothing taken yet.
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), taken: 0 }
    }
}

impl Default for Budget {
    /// One of 1 GiB, for whoever does not say.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

/// What one reader has taken of a budget. It goes back when this is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    taken: u64,
}

impl Charge {
    /// Takes more bytes. Says whether there were as many; if not, nothing is taken.
    pub fn take(&mut self, bytes: u64) -> bool {
        let left = &self.budget.0.left;
        let taken =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok();
        if taken {
            self.taken += bytes;
        }
        taken
    }

    /// Gives all back but so many bytes.
    pub fn keep(&mut self, bytes: u64) {
        let back = self.taken.saturating_sub(bytes);
        self.budget.0.left.fetch_add(back, Ordering::Relaxed);
        self.taken -= back;
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
        let (mut first, mut second) = (budget.charge(), budget.clone().charge());
        assert!(first.take(8));
        assert!(!second.take(3));
        assert!(second.take(2));
        first.keep(5);
        assert!(second.take(3) && !second.take(1));
        drop(first);
        assert!(second.take(5) && !second.take(1));
    }
}
