//! Where the stacks of threads have their roots: told by the converter, whose walks have come there, to the threads that copy
//! and read stacks. Nobody waits for anybody: a root is one word, and whoever looks finds it or not.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads' roots there is room for. Threads whose numbers differ by a multiple of this take the place of each other.
const PLACES: usize = 1024;
/// The bits of an address that are kept, as many as programs of 64-bit ARM have at most; roots further up are not kept. The lowest
/// three are zero, and the thread's number, without what its place says, is above.
const ADDRESS_BITS: u32 = 52;

/// The roots of the stacks of many threads.
#[derive(Debug)]
pub(crate) struct StackBases {
    places: Box<[AtomicU64]>,
}

impl Default for StackBases {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU64::new(0)).collect() }
    }
}

/// What stands for a thread's number beside its root. No process has as many threads as it takes to run out of bits (`PID_MAX_LIMIT`
/// in `include/linux/threads.h`).
fn tag(tid: u32) -> u64 {
    u64::from(tid / PLACES as u32) << (ADDRESS_BITS - 3)
}

impl StackBases {
    fn place(&self, tid: u32) -> &AtomicU64 {
        &self.places[tid as usize % PLACES]
    }

    /// Says which word of a thread's stack is the outermost one that walks to its root look at; `None` where that is not known
    /// any more.
    pub(crate) fn set(&self, tid: u32, root: Option<u64>) {
        let (place, tag) = (self.place(tid), tag(tid));
        if let Some(root) = root.filter(|root| *root >> ADDRESS_BITS == 0) {
            place.store(tag | root >> 3, Ordering::Relaxed);
        } else if self.get(tid).is_some() {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// The outermost word of a thread's stack that walks to its root look at, where that is known.
    pub(crate) fn get(&self, tid: u32) -> Option<u64> {
        let word = self.place(tid).load(Ordering::Relaxed);
        let address = word & ((1 << (ADDRESS_BITS - 3)) - 1);
        (address != 0 && word ^ address == tag(tid)).then_some(address << 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_found_by_its_thread_alone() {
        const ROOT: u64 = 0xf_ffff_ffff_fff8;
        const LAST: u32 = (1 << 22) - 1;
        let roots = StackBases::default();
        assert_eq!(roots.get(0), None);
        for tid in [0, 7, LAST] {
            roots.set(tid, Some(ROOT - u64::from(tid) * 8));
        }
        assert_eq!(
            [0, 7, LAST].map(|tid| roots.get(tid)),
            [0, 7, LAST].map(|tid| Some(ROOT - u64::from(tid) * 8))
        );
        assert_eq!([8, 7 + PLACES as u32].map(|tid| roots.get(tid)), [None; 2]);
        roots.set(7 + PLACES as u32, None);
        assert!(roots.get(7).is_some(), "that was another thread");
        roots.set(7, None);
        assert_eq!(roots.get(7), None);
        roots.set(7 + PLACES as u32, Some(0x1000));
        assert_eq!([7, 7 + PLACES as u32].map(|tid| roots.get(tid)), [None, Some(0x1000)]);
        roots.set(5, Some(1 << ADDRESS_BITS));
        assert_eq!(roots.get(5), None, "nobody can keep it");
    }
}
