//! Blocks for the time in which the next allocator is looked for, because looking may allocate. They are never
//! freed.

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const LEN: usize = 128 << 10;

/// The bytes before each block, with its size.
const SIZE: usize = 16;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; LEN]>);

// SAFETY: each part is given to one caller alone.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; LEN]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// A block of zeros; null if there is no room.
#[cold]
pub(super) fn allocate(size: usize, alignment: usize) -> *mut u8 {
    let alignment = alignment.max(16);
    if size > LEN || alignment > 4096 || !alignment.is_power_of_two() {
        return null_mut();
    }
    let place = |used: usize| (used + SIZE).next_multiple_of(alignment);
    let taken = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        (place(used) + size <= LEN).then(|| place(used) + size)
    });
    let Ok(used) = taken else { return null_mut() };
    // SAFETY: the place and the word before it are within the memory, and belong to this caller.
    unsafe {
        let block = MEMORY.0.get().cast::<u8>().add(place(used));
        block.sub(8).cast::<usize>().write_unaligned(size);
        block
    }
}

/// The size of a block of this memory; `None` for all others.
#[inline(always)]
pub(super) fn size_of(block: *mut u8) -> Option<usize> {
    let offset = (block as usize).wrapping_sub(MEMORY.0.get() as usize);
    if offset >= LEN || offset < SIZE {
        return None;
    }
    // SAFETY: it is a block of this memory, which has its size before it.
    Some(unsafe { block.sub(8).cast::<usize>().read_unaligned() })
}
