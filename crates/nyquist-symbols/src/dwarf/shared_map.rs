//! A map of results that threads share.

use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values by a position in a section. They are distributed over several maps, so that threads seldom wait for
/// each other.
#[derive(Debug)]
pub(crate) struct SharedMap<T>([Mutex<FxHashMap<u64, T>>; 16]);

impl<T> Default for SharedMap<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl<T: Clone> SharedMap<T> {
    pub(crate) fn get(&self, position: u64) -> Option<T> {
        self.lock(position).get(&position).cloned()
    }

    /// Stores a value, unless another thread was faster. Returns the stored value.
    pub(crate) fn keep(&self, position: u64, value: T) -> T {
        self.lock(position).entry(position).or_insert(value).clone()
    }

    fn lock(&self, position: u64) -> MutexGuard<'_, FxHashMap<u64, T>> {
        let map = &self.0[position as usize % self.0.len()];
        map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
