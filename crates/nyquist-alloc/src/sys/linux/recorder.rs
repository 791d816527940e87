//! What happens at an allocation and at a free.

use super::arch::Caller;
use super::calls;
use super::distance::{distance, next_random};
use super::known_stacks;
use super::process;
use super::shared::{SharedFile, kind_and_len};
use super::stack;
use super::thread::{self, ThreadState};
use crate::protocol::{MAX_HASHED_RATE, MAX_STACK, record};

pub(in crate::sys) use super::process::is_off;

/// A thread adds what it has allocated and freed to the process's sum when the difference is as large, at the latest.
const MAX_ADD_FROM: u64 = 64 << 10;

/// A block that is about to be freed.
#[derive(Clone, Copy)]
pub(in crate::sys) struct Released {
    address: usize,
    held: usize,
    /// Whether its free is to be recorded.
    is_recorded: bool,
    time: u64,
}

/// Notes an allocation of `size` bytes, for which the allocator holds `held` bytes.
#[inline(always)]
pub(in crate::sys) fn allocated(address: usize, size: usize, held: usize, caller: impl FnOnce() -> Caller) {
    let thread = thread::state();
    thread.allocations.set(thread.allocations.get().wrapping_add(1));
    count(thread, held as i64);
    // One byte more, so that blocks of no bytes are sampled, too.
    let left = thread.left.get().saturating_sub_unsigned(size as u64).saturating_sub(1);
    thread.left.set(left);
    if left <= 0 && !thread.is_recording.get() {
        sample(thread, address, size, caller());
    }
}

/// Notes that a block is about to be freed. Its address is given up first, because another thread may get it
/// at once.
#[inline(always)]
pub(in crate::sys) fn release(address: usize, held: usize) -> Released {
    let thread = thread::state();
    count(thread, -(held as i64));
    let mut released = Released { address, held, is_recorded: false, time: 0 };
    if !process::is_on() {
        return released;
    }
    if process::records_each() {
        released.is_recorded = process::file().is_some();
    } else if let Some(file) = process::file() {
        released.is_recorded = file.remove(address);
    }
    if released.is_recorded {
        released.time = calls::now();
    }
    released
}

impl Released {
    /// Records the free. The block may have been freed since.
    #[inline(always)]
    pub(in crate::sys) fn record(self) {
        if self.is_recorded {
            self.write();
        }
    }

    #[cold]
    fn write(self) {
        let (thread, Some(file)) = (thread::state(), process::file()) else { return };
        if thread.is_recording.replace(true) {
            // A signal handler frees while its thread writes a record.
            return file.lose_free();
        }
        let words = [
            kind_and_len(record::FREE, record::FREE_WORDS, 0),
            self.time,
            u64::from(id_of(thread)),
            self.address as u64,
            thread.allocations.get(),
        ];
        process::lock();
        // Another thread may have found out meanwhile that nobody reads.
        if !process::is_off() && !file.append(&words, &[], process::records_each()) {
            file.lose_free();
            give_up_on(file);
        }
        process::unlock();
        thread.is_recording.set(false);
    }
}

/// Takes a release back, because the block stays: the allocator could not make it larger.
#[cold]
pub(in crate::sys) fn restore(released: Released) {
    count(thread::state(), released.held as i64);
    if released.is_recorded && !process::records_each() {
        if let Some(file) = process::file() {
            if !file.insert(released.address) {
                file.lose_free();
            }
        }
    }
}

/// The thread's number. A thread that only frees has not prepared its state.
fn id_of(thread: &ThreadState) -> u32 {
    if thread.recording.get() == process::recording() { thread.id.get() } else { calls::thread_id() }
}

/// Counts bytes that are allocated, or freed if they are negative.
#[inline(always)]
fn count(thread: &ThreadState, bytes: i64) {
    let difference = thread.difference.get().wrapping_add(bytes);
    thread.difference.set(difference);
    if difference.unsigned_abs() >= thread.add_from.get() {
        thread.difference.set(0);
        thread.add_from.set((thread.add_from.get() * 2).clamp(512, MAX_ADD_FROM));
        process::add_live(difference);
    }
}

/// Records an allocation, if it is time for a sample.
#[cold]
fn sample(thread: &ThreadState, address: usize, size: usize, caller: Caller) {
    thread.is_recording.set(true);
    if process::prepare() {
        let is_new = thread.recording.get() != process::recording();
        if is_new {
            thread.begin(process::recording());
            // The distance of a process that was forked, or of a new thread, begins before this block.
            let left = next_distance(thread).saturating_sub_unsigned(size as u64).saturating_sub(1);
            thread.left.set(left);
        }
        if thread.left.get() <= 0 {
            write(thread, address, size, caller);
            thread.left.set(next_distance(thread));
        }
    } else {
        thread.left.set(i64::MAX);
    }
    thread.is_recording.set(false);
}

fn next_distance(thread: &ThreadState) -> i64 {
    if process::records_each() {
        return 0;
    }
    let mut random = thread.random.get();
    let next = distance(process::rate(), next_random(&mut random));
    thread.random.set(random);
    next
}

/// Writes the record of an allocation.
fn write(thread: &ThreadState, address: usize, size: usize, caller: Caller) {
    process::lock();
    if let Some(file) = process::open_file().filter(|_| !process::is_off()) {
        if process::records_each() || file.insert(address) {
            if !append(thread, file, (address, size), caller) {
                file.lose_allocation();
                if !process::records_each() {
                    file.remove(address);
                }
                give_up_on(file);
            }
        } else {
            file.lose_allocation();
        }
    }
    process::unlock();
}

/// Records no more where the recorder has stopped reading, instead of waiting at each allocation.
fn give_up_on(file: SharedFile) {
    if process::records_each() || file.is_closed() {
        process::turn_off();
    }
}

fn append(thread: &ThreadState, file: SharedFile, (address, size): (usize, usize), caller: Caller) -> bool {
    let end = stack::readable_end(thread, caller.sp, MAX_STACK);
    let len = end.saturating_sub(caller.sp) & !7;
    // SAFETY: all of it was found to be readable, and belongs to this thread's stack. What the thread's callers
    // change there is not changed while this runs.
    let bytes = unsafe { core::slice::from_raw_parts(caller.sp as *const u8, len) };
    let live = process::add_live(thread.difference.replace(0));
    let now = calls::now();
    let registers = [caller.ip as u64, caller.sp as u64, caller.fp as u64];
    let (hash, is_known) = if process::rate() <= MAX_HASHED_RATE {
        known_stacks::look_up((process::recording(), thread.id.get()), now, registers, bytes)
    } else {
        (0, false)
    };
    let bytes = if is_known { &[] } else { bytes };
    let [ip, sp, fp] = registers;
    let words: [u64; record::ALLOCATION_WORDS] = [
        kind_and_len(record::ALLOCATION, record::ALLOCATION_WORDS, bytes.len()),
        now,
        u64::from(thread.id.get()),
        address as u64,
        thread.allocations.get(),
        size as u64,
        live as u64,
        hash,
        ip,
        sp,
        fp,
        bytes.len() as u64,
    ];
    file.append(&words, bytes, process::records_each())
}
