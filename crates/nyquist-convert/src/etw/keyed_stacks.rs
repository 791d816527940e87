//! Stacks that events name by a number. The stack itself comes when the number ends, or at the end of the trace.

use nyquist_etw::kernel::{Addresses, KeyedStack};
use nyquist_object::Avma;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The most addresses that are kept.
const MAX_ADDRESSES: usize = 1 << 26;
/// The most addresses of a stack that are used: Windows walks 192. More would let a small file become a large
/// profile, because many events can name one stack.
const MAX_FRAMES: usize = 256;

/// The addresses of a stack, innermost first.
pub(super) fn frames(addresses: &Addresses<'_>) -> Arc<[Avma]> {
    addresses.iter().take(MAX_FRAMES).map(Avma).collect()
}

/// A stack that had a number, and when it was stated.
type Provided = (u64, Arc<[Avma]>);

/// Stacks by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyedStacks {
    /// The stacks that had each number, by time.
    by_key: FxHashMap<u64, Vec<Provided>>,
    addresses: usize,
}

impl KeyedStacks {
    /// Takes note of a stack, stated at a time.
    pub(super) fn add(&mut self, time: u64, stack: &KeyedStack<'_>) {
        if self.addresses >= MAX_ADDRESSES {
            return;
        }
        let addresses = frames(&stack.addresses);
        self.addresses += addresses.len();
        self.by_key.entry(stack.key).or_default().push((time, addresses));
    }

    /// The stack that a number means in an event at a time: the first one that is stated later.
    pub(super) fn find(&self, key: u64, time: u64) -> Option<&Arc<[Avma]>> {
        let provided = self.by_key.get(&key)?;
        let later = provided.partition_point(|(at, _)| *at < time);
        provided.get(later).or(provided.last()).map(|(_, addresses)| addresses)
    }
}
