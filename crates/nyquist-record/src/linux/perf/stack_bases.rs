//! The roots of threads' stacks. The converter, whose walks reach them, sets them for the threads that copy
//! and read stacks. No thread waits for another: a root is a single atomic word, which is set or not.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of slots for roots. Threads whose ids differ by a multiple of this replace each other.
const PLACES: usize = 1024;
/// The address bits that are stored, which is the maximum for 64-bit ARM programs; larger roots are not
/// stored. The lowest three bits are zero. The part of the thread id that the slot does not determine is
/// stored above.
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

/// The part of the thread id that is stored with the root. Thread ids are small enough for the available bits
/// (`PID_MAX_LIMIT` in `include/linux/threads.h`).
fn tag(tid: u32) -> u64 {
    u64::from(tid / PLACES as u32) << (ADDRESS_BITS - 3)
}

impl StackBases {
    fn place(&self, tid: u32) -> &AtomicU64 {
        &self.places[tid as usize % PLACES]
    }

    /// Sets the outermost word of a thread's stack that walks to its root read; `None` if it is not known any
    /// more.
    pub(crate) fn set(&self, tid: u32, root: Option<u64>) {
        let (place, tag) = (self.place(tid), tag(tid));
        if let Some(root) = root.filter(|root| *root >> ADDRESS_BITS == 0) {
            place.store(tag | root >> 3, Ordering::Relaxed);
        } else if self.get(tid).is_some() {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// The outermost word of a thread's stack that walks to its root read, if known.
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
