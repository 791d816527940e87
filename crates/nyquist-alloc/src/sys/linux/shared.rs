//! The file that the process shares with the recorder: its table of sampled blocks, and its ring.
//!
//! The file's space is reserved before it is mapped, and its descriptor is closed at once.

use super::calls;
use crate::protocol::{
    CLOSED, FREED, MAGIC, NEVER_USED, RING, RING_OF_EACH, RING_START, TABLE, TABLE_ENTRIES, header, record,
};
use core::sync::atomic::{AtomicU64, Ordering};

/// How many places of the table are looked at for an address.
const MAX_PROBES: usize = 16;

/// How long a process waits at a time until the recorder has read something, where each allocation is recorded.
const PAUSE_NS: u64 = 200_000;

/// How often it waits until it takes the recorder to be gone: ten seconds.
const MAX_PAUSES: u32 = 50_000;

/// The file, mapped.
#[derive(Clone, Copy)]
pub(super) struct SharedFile(*mut u8);

impl SharedFile {
    /// The file that is mapped at an address, if it is none.
    #[inline(always)]
    pub(super) fn at(address: *mut u8) -> Option<Self> {
        (!address.is_null()).then_some(Self(address))
    }

    pub(super) fn address(self) -> *mut u8 {
        self.0
    }

    /// Maps the file that was made for a process.
    pub(super) fn map(file: usize, len: usize, process: u32, rate: u64) -> Option<Self> {
        let mapped = calls::map(Some(file), len);
        calls::close(file);
        let made = Self(mapped?);
        made.word(header::PID).store(u64::from(process), Ordering::Relaxed);
        made.word(header::PID_NAMESPACE).store(calls::namespace(), Ordering::Relaxed);
        made.word(header::RATE).store(rate, Ordering::Relaxed);
        #[cfg(nyquist_preloaded)]
        made.word(header::FLAGS).store(super::next::flags(), Ordering::Relaxed);
        made.word(header::CAPACITY).store((len - RING_START) as u64, Ordering::Relaxed);
        made.word(0).store(u64::from_le_bytes(MAGIC), Ordering::Release);
        Some(made)
    }

    /// The bytes of a process's file.
    pub(super) fn len_at(rate: u64) -> usize {
        RING_START + if rate <= 1 { RING_OF_EACH } else { RING }
    }

    /// A word of the file. All places that are used are multiples of eight within it.
    #[inline(always)]
    fn word(self, at: usize) -> &'static AtomicU64 {
        // SAFETY: the place is within the mapping, which is never unmapped, and aligned.
        unsafe { &*self.0.add(at).cast::<AtomicU64>() }
    }

    /// The place of the table where the search for an address begins.
    #[inline(always)]
    fn first_place(address: usize) -> usize {
        ((address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
    }

    /// The n-th place of a search.
    #[inline(always)]
    fn place(self, first: usize, n: usize) -> &'static AtomicU64 {
        self.word(TABLE + (first + n) % TABLE_ENTRIES * 8)
    }

    /// Notes that a block is sampled. Fails if there is no room.
    pub(super) fn insert(self, address: usize) -> bool {
        let first = Self::first_place(address);
        for n in 0..MAX_PROBES {
            let place = self.place(first, n);
            let held = place.load(Ordering::Relaxed);
            if (held == NEVER_USED || held == FREED)
                && place.compare_exchange(held, address as u64, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                return true;
            }
        }
        false
    }

    /// Takes a block out of the table. Returns whether it was sampled.
    #[inline(always)]
    pub(super) fn remove(self, address: usize) -> bool {
        let first = Self::first_place(address);
        for n in 0..MAX_PROBES {
            let place = self.place(first, n);
            let held = place.load(Ordering::Relaxed);
            if held == NEVER_USED {
                return false;
            }
            if held == address as u64 {
                // The block is being freed, so nobody else changes its place.
                place.store(FREED, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Counts a sampled allocation that could not be recorded.
    pub(super) fn lose_allocation(self) {
        self.word(header::LOST_ALLOCATIONS).fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a free that could not be recorded.
    pub(super) fn lose_free(self) {
        self.word(header::LOST_FREES).fetch_add(1, Ordering::Relaxed);
    }

    /// Appends a record of words and bytes, of which the words are a multiple of eight bytes, too. Returns
    /// whether there was room. It can wait for room. Called with the lock held.
    pub(super) fn append(self, words: &[u64], bytes: &[u8], waits: bool) -> bool {
        let capacity = self.word(header::CAPACITY).load(Ordering::Relaxed);
        let len = (words.len() * 8 + bytes.len()) as u64;
        let written = self.word(header::WRITTEN).load(Ordering::Relaxed);
        if !self.has_room(written + len, capacity, waits) {
            return false;
        }
        let mut at = written;
        for word in words {
            self.word(RING_START + (at % capacity) as usize).store(*word, Ordering::Relaxed);
            at += 8;
        }
        for chunk in bytes.chunks_exact(8) {
            let word = chunk.try_into().map_or(0, u64::from_le_bytes);
            self.word(RING_START + (at % capacity) as usize).store(word, Ordering::Relaxed);
            at += 8;
        }
        self.word(header::WRITTEN).store(at, Ordering::Release);
        true
    }

    /// Whether the recorder reads no more.
    pub(super) fn is_closed(self) -> bool {
        self.word(header::READ).load(Ordering::Acquire) == CLOSED
    }

    /// Whether the ring has room up to a position.
    fn has_room(self, end: u64, capacity: u64, waits: bool) -> bool {
        let read = || self.word(header::READ).load(Ordering::Acquire);
        let mut last = read();
        let mut pauses = 0;
        if last == CLOSED {
            return false;
        }
        while end.wrapping_sub(last) > capacity {
            if !waits || pauses == MAX_PAUSES {
                return false;
            }
            calls::sleep_ns(PAUSE_NS);
            let now = read();
            if now == CLOSED {
                return false;
            }
            pauses = if now == last { pauses + 1 } else { 0 };
            last = now;
        }
        true
    }
}

/// The first word of a record.
pub(super) fn kind_and_len(kind: u32, words: usize, bytes: usize) -> u64 {
    debug_assert!(words >= record::FREE_WORDS);
    u64::from(kind) | ((words * 8 + bytes) as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in memory, of zeros, with a ring of 256 bytes.
    fn shared() -> SharedFile {
        let words = vec![0_u64; (RING_START + 256) / 8].leak();
        let file = SharedFile(words.as_mut_ptr().cast());
        file.word(header::CAPACITY).store(256, Ordering::Relaxed);
        file
    }

    #[test]
    fn the_table_has_what_was_not_removed() {
        let file = shared();
        let addresses = (0..2000).map(|number| 0x7f00_0000_0000 + number * 48);
        assert!(addresses.clone().all(|address| file.insert(address)));
        assert!(!file.remove(0x1000));
        assert!(addresses.clone().all(|address| file.remove(address)));
        assert!(!addresses.clone().any(|address| file.remove(address)));
        // Places of freed blocks are used again.
        for _ in 0..100 {
            assert!(addresses.clone().all(|address| file.insert(address) && file.remove(address)));
        }
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let file = shared();
        let address = |number: usize| 0x10_0000 + number * 16;
        let held: Vec<usize> =
            (0..TABLE_ENTRIES * 2).map(address).filter(|address| file.insert(*address)).collect();
        assert!(held.len() <= TABLE_ENTRIES && held.len() > TABLE_ENTRIES / 2);
        assert!(held.iter().all(|address| file.remove(*address)));
    }

    #[test]
    fn a_full_ring_takes_no_more_until_it_is_read() {
        let file = shared();
        assert!((0..4).all(|_| file.append(&[1, 2, 3, 4], &[7; 32], false)));
        assert!(!file.append(&[1], &[], false));
        file.word(header::READ).store(64, Ordering::Relaxed);
        assert!(file.append(&[9; 8], &[], false) && !file.append(&[1], &[], false));
        assert_eq!(file.word(RING_START).load(Ordering::Relaxed), 9);
        assert_eq!(file.word(header::WRITTEN).load(Ordering::Relaxed), 320);
    }

    /// The ring is full when the recorder ends, and has room.
    #[test]
    fn nothing_waits_for_a_recorder_that_has_ended() {
        let began = std::time::Instant::now();
        for records in [0, 4] {
            let file = shared();
            assert!((0..records).all(|_| file.append(&[1; 8], &[], false)) && !file.is_closed());
            let at = file.0 as usize;
            let recorder = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                SharedFile(at as *mut u8).word(header::READ).store(CLOSED, Ordering::Release);
            });
            while !file.is_closed() {
                file.append(&[1; 8], &[], true);
            }
            recorder.join().unwrap();
            assert!(!file.append(&[1], &[], true));
        }
        // Half of the time that it waits for one that does not say so.
        assert!(began.elapsed().as_secs() < 5);
    }
}
