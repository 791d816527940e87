//! A memory limit for data from files, shared by all readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A number of bytes of memory that are still available. Clones share them.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Amounts>);

#[derive(Debug)]
struct Amounts {
    most: u64,
    used: AtomicU64,
    was_refused: AtomicBool,
}

impl Budget {
    /// A budget of that many bytes.
    pub fn new(most: u64) -> Self {
        Self(Arc::new(Amounts { most, used: AtomicU64::new(0), was_refused: AtomicBool::new(false) }))
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
        self.note(bytes <= self.most().saturating_sub(self.used()))
    }

    /// How many bytes are charged. They exceed the initial number if [`Charge::set`] has charged more.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
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
        let Amounts { most, used, .. } = &*self.budget.0;
        let more = |used: u64| used.checked_add(bytes).filter(|used| used <= most);
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if taken {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        }
        self.budget.note(taken)
    }

    /// Returns all but that many bytes.
    pub fn keep(&mut self, bytes: u64) {
        let retained = (*self.taken.get_mut()).min(bytes);
        self.set(retained);
    }

    /// Charges exactly this many bytes, even if they are not available: for memory that is needed already,
    /// and whose owner makes room afterwards.
    pub fn set(&mut self, bytes: u64) {
        let taken = std::mem::replace(self.taken.get_mut(), bytes);
        let used = &self.budget.0.used;
        match bytes.checked_sub(taken) {
            Some(0) => {}
            Some(more) => _ = used.fetch_add(more, Ordering::Relaxed),
            None => _ = used.fetch_sub(taken - bytes, Ordering::Relaxed),
        }
    }

    /// Charges more bytes, even if they are not available.
    pub fn add(&mut self, bytes: u64) {
        self.set(self.bytes().saturating_add(bytes));
    }

    /// How many bytes are charged.
    pub fn bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// A charge of 0 bytes of a budget of its own, which is the default one.
impl Default for Charge {
    fn default() -> Self {
        Budget::default().charge()
    }
}

/// A clone charges the same number of bytes once more, even if they are not available.
impl Clone for Charge {
    fn clone(&self) -> Self {
        let mut clone = self.budget.charge();
        clone.set(self.bytes());
        clone
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

    #[test]
    fn needed_memory_may_exceed_the_budget() {
        let budget = Budget::new(10);
        let mut charge = budget.charge();
        charge.set(12);
        assert!(budget.used() == 12 && !budget.has(1) && !charge.take(1));
        let clone = charge.clone();
        assert_eq!(budget.used(), 24);
        charge.set(3);
        assert_eq!((budget.used(), charge.bytes(), clone.bytes()), (15, 3, 12));
        drop((charge, clone));
        assert!(budget.used() == 0 && budget.has(10));
    }
}
