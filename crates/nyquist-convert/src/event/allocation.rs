//! Blocks of memory that a program allocates and frees.

use super::ids::{Pid, Tid};
use super::sample::Sample;

/// The number of a heap: the memory that a process allocates until it ends or becomes another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeapId(pub u64);

/// A block was allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The heap.
    pub heap: HeapId,
    /// The thread, and its stack, from the caller of the allocator on. The sample's period and CPU time are not
    /// used.
    pub sample: Sample,
    /// A number for the stack, if allocations with the same number have the same one. Then only the first has it.
    pub stack: Option<u64>,
    /// The address of the block.
    pub address: u64,
    /// Its size in bytes, as the program asked for it.
    pub size: u64,
    /// The mean distance of samples in bytes; 1 if each allocation is recorded.
    pub distance: u64,
    /// How many allocations the thread has made, with this one.
    pub number: u64,
    /// The bytes that the whole heap had allocated and not freed at this time, by its own count.
    pub live: i64,
}

/// A block was freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Free {
    /// The heap.
    pub heap: HeapId,
    /// The process.
    pub pid: Pid,
    /// The thread that freed it.
    pub tid: Tid,
    /// The address of the block.
    pub address: u64,
    /// How many allocations this thread had made.
    pub number: u64,
}

/// A heap is known to have no more than these blocks that were recorded, because records of frees may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapContents {
    /// The heap.
    pub heap: HeapId,
    /// The addresses of its blocks, sorted.
    pub addresses: Vec<u64>,
}
