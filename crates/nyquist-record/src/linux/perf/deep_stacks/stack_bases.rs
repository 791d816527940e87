//! The bases of threads' stacks, and which threads' copies ended early. The converter's feedback sets them for
//! the threads that copy and read stacks. No thread waits for another: each thread has a single atomic word.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of slots for bases. Threads whose ids differ by a multiple of this replace each other.
const SLOTS: usize = 1024;
/// The address bits that are stored, which is the maximum for 64-bit ARM programs; larger bases are not
/// stored. The lowest three bits are zero. The part of the thread id that the slot does not determine is
/// stored above.
const ADDRESS_BITS: u32 = 52;
/// In place of an address: a walk has ended at the end of a copy, and the base is not known.
const ENDED_EARLY: u64 = 1 << 63;

/// The bases of the stacks of many threads.
#[derive(Debug)]
pub(crate) struct StackBases {
    slots: Box<[AtomicU64]>,
}

impl Default for StackBases {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

/// The part of the thread id that is stored with the base. Thread ids are small enough for the available bits
/// (`PID_MAX_LIMIT` in `include/linux/threads.h`).
fn tag(tid: u32) -> u64 {
    u64::from(tid / SLOTS as u32) << (ADDRESS_BITS - 3)
}

impl StackBases {
    fn slot(&self, tid: u32) -> &AtomicU64 {
        &self.slots[tid as usize % SLOTS]
    }

    /// Sets the outermost word of a thread's stack that walks to its root read; `None` if it is not known any
    /// more.
    pub(crate) fn set(&self, tid: u32, base: Option<u64>) {
        let (slot, tag) = (self.slot(tid), tag(tid));
        if let Some(base) = base.filter(|base| *base >> ADDRESS_BITS == 0) {
            slot.store(tag | base >> 3, Ordering::Relaxed);
        } else if self.get(tid).is_some() {
            slot.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that a walk has ended at the end of a thread's copy, unless the thread's base is known.
    pub(crate) fn note_ended_early(&self, tid: u32) {
        if self.get(tid).is_none() {
            self.slot(tid).store(ENDED_EARLY | tag(tid), Ordering::Relaxed);
        }
    }

    /// Whether a walk has ended at the end of a thread's copy, and its base is not known.
    pub(crate) fn has_ended_early(&self, tid: u32) -> bool {
        self.slot(tid).load(Ordering::Relaxed) == ENDED_EARLY | tag(tid)
    }

    /// Notes that the stack of a thread whose base is not known does not go on beyond its copies.
    pub(crate) fn note_complete(&self, tid: u32) {
        let ended_early = ENDED_EARLY | tag(tid);
        // A base that was set meanwhile stays.
        let _ = self.slot(tid).compare_exchange(ended_early, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The outermost word of a thread's stack that walks to its root read, if known.
    pub(crate) fn get(&self, tid: u32) -> Option<u64> {
        let word = self.slot(tid).load(Ordering::Relaxed);
        let address = word & ((1 << (ADDRESS_BITS - 3)) - 1);
        (address != 0 && word ^ address == tag(tid)).then_some(address << 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_found_by_its_thread_alone() {
        const BASE: u64 = 0xf_ffff_ffff_fff8;
        const LAST: u32 = (1 << 22) - 1;
        let bases = StackBases::default();
        assert_eq!(bases.get(0), None);
        for tid in [0, 7, LAST] {
            bases.set(tid, Some(BASE - u64::from(tid) * 8));
        }
        assert_eq!(
            [0, 7, LAST].map(|tid| bases.get(tid)),
            [0, 7, LAST].map(|tid| Some(BASE - u64::from(tid) * 8))
        );
        assert_eq!([8, 7 + SLOTS as u32].map(|tid| bases.get(tid)), [None; 2]);
        bases.set(7 + SLOTS as u32, None);
        assert!(bases.get(7).is_some(), "that was another thread");
        bases.set(7, None);
        assert_eq!(bases.get(7), None);
        bases.set(7 + SLOTS as u32, Some(0x1000));
        assert_eq!([7, 7 + SLOTS as u32].map(|tid| bases.get(tid)), [None, Some(0x1000)]);
        assert!(!bases.has_ended_early(7));
        bases.note_ended_early(7 + SLOTS as u32);
        assert_eq!(bases.get(7 + SLOTS as u32), Some(0x1000), "it is known already");
        bases.note_ended_early(7);
        assert_eq!([7, 7 + SLOTS as u32].map(|tid| bases.has_ended_early(tid)), [true, false]);
        assert_eq!([7, 7 + SLOTS as u32].map(|tid| bases.get(tid)), [None; 2]);
        bases.note_complete(7 + SLOTS as u32);
        assert!(bases.has_ended_early(7), "that was another thread");
        bases.set(7, Some(0x2000));
        bases.note_complete(7);
        assert_eq!(bases.get(7), Some(0x2000));
        bases.set(5, Some(1 << ADDRESS_BITS));
        assert_eq!(bases.get(5), None, "nobody can keep it");
    }
}
