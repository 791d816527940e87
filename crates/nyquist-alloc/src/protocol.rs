//! The file that a process with recorded allocations shares with the recorder.
//!
//! It consists of a header, a table, and a ring. The table has the address of each sampled block that is still
//! allocated, so that a free is never lost, whatever happens to its record. The ring has records. All numbers
//! are little-endian. The recorder trusts none of them.

/// The environment variable with the folder of these files.
pub const FOLDER_VARIABLE: &str = "NYQUIST_ALLOC_DIR";

/// The environment variable with the mean distance of samples in bytes.
pub const RATE_VARIABLE: &str = "NYQUIST_ALLOC_RATE";

/// The extension of these files.
pub const EXTENSION: &str = "nyqalloc";

/// The section of programs that wrap their allocator themselves.
pub const SECTION: &str = ".nyquist_alloc";

/// The first bytes of a file. They are written last.
pub const MAGIC: [u8; 8] = *b"NYQALLO1";

/// The mean distance of samples in bytes, if none was chosen.
pub const DEFAULT_RATE: u64 = 512 * 1024;

/// How many addresses the table has room for.
pub const TABLE_ENTRIES: usize = 1 << 16;

/// The bytes of the ring of a process that samples.
pub const RING: usize = 2 << 20;

/// The bytes of the ring of a process that records each allocation.
pub const RING_OF_EACH: usize = 8 << 20;

/// The most bytes of a ring that a recorder accepts.
pub const MAX_RING: u64 = 64 << 20;

/// The most bytes of a stack in a record.
pub const MAX_STACK: usize = 32 << 10;

/// Where samples are further apart than this, each has the copy of its stack: finding out that it is known would cost
/// more than the copy. Otherwise a stack is copied once, and has a number.
pub const MAX_HASHED_RATE: u64 = 16 << 10;

/// A place of the table that is not used and ends a search.
pub const NEVER_USED: u64 = 0;

/// A place of the table whose block was freed.
pub const FREED: u64 = 1;

/// What a recorder writes that reads no more: nothing waits for it.
pub const CLOSED: u64 = u64::MAX;

/// The places of the header's fields.
pub mod header {
    /// The process's number in its own namespace, of 4 bytes.
    pub const PID: usize = 8;
    /// The inode of its pid namespace; 0 if that is not known.
    pub const PID_NAMESPACE: usize = 16;
    /// The mean distance of samples in bytes; 1 if each allocation is recorded.
    pub const RATE: usize = 24;
    /// The bytes of the ring.
    pub const CAPACITY: usize = 32;
    /// What the recorder should know of the process: a sum of [`flag`](super::flag)s.
    pub const FLAGS: usize = 40;
    /// How many bytes were ever written to the ring.
    pub const WRITTEN: usize = 64;
    /// How many sampled allocations were lost.
    pub const LOST_ALLOCATIONS: usize = 72;
    /// How many records of frees were lost.
    pub const LOST_FREES: usize = 80;
    /// How many bytes the recorder has read, or [`super::CLOSED`]. Only the recorder writes this.
    pub const READ: usize = 128;
    /// The bytes of the header.
    pub const LEN: usize = 4096;
}

/// What the recorder should know of a process.
pub mod flag {
    /// C++'s operators do not call `malloc`, and are not seen.
    pub const OPERATORS_NOT_SEEN: u64 = 1;
}

/// The place of the table.
pub const TABLE: usize = header::LEN;

/// The place of the ring.
pub const RING_START: usize = TABLE + TABLE_ENTRIES * 8;

/// Records of the ring. Each has a multiple of eight bytes, and may begin at its end and go on at its start.
pub mod record {
    /// The kind of an allocation.
    pub const ALLOCATION: u32 = 1;
    /// The kind of a free.
    pub const FREE: u32 = 2;
    /// The words of a free: kind and bytes of the record, time, thread, address, and the number of allocations
    /// that the thread had made.
    pub const FREE_WORDS: usize = 5;
    /// The words of an allocation before its stack: those of a free, the size, the bytes that the process had
    /// allocated in all at that time, the hash of the stack or 0, the instruction pointer of the caller, its
    /// stack pointer and its frame pointer, and the bytes of the stack.
    pub const ALLOCATION_WORDS: usize = 12;
}
