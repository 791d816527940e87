//! Which stacks were written already: the copy of a stack is written once, and later its hash alone.
//!
//! The hash has every word of the copy that can matter to a walk: all that may be an address of code, and all that
//! point into the stack. Words of other memory, and numbers, differ from call to call and do not matter. Code is
//! whatever is not known to be data, so that code which was just loaded counts, too.

use super::calls;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

/// How many hashes are kept. When there are more, they are forgotten, and stacks are written again.
const PLACES: usize = 1 << 16;

/// The most ranges of data that are told apart.
const MAX_RANGES: usize = 1 << 10;

/// How long it is believed that memory has not changed.
const FRESH_NS: u64 = 20_000_000;

/// Addresses of programs are below this one.
const END_OF_ADDRESSES: u64 = 1 << 47;

/// Where data is, and which stacks are known. Used with the process's lock held.
struct Known {
    ranges: [(u64, u64); MAX_RANGES],
    count: usize,
    /// Whether there are more ranges than have room.
    is_full: bool,
    /// Where the first code is.
    first_code: u64,
    /// A number for all ranges of code.
    code: u64,
    read_at: u64,
    hashes: *mut u64,
    held: usize,
    buffer: [u8; 4096],
}

struct Shared(UnsafeCell<Known>);

// SAFETY: it is used with the lock held.
unsafe impl Sync for Shared {}

static KNOWN: Shared = Shared(UnsafeCell::new(Known {
    ranges: [(0, 0); MAX_RANGES],
    count: 0,
    is_full: false,
    first_code: 0,
    code: 0,
    read_at: 0,
    hashes: core::ptr::null_mut(),
    held: 0,
    buffer: [0; 4096],
}));

/// The recording that the hashes belong to.
static RECORDING: AtomicU64 = AtomicU64::new(0);

/// The hash of a stack, and whether it was known. The hash is 0 if none can be made. Called with the lock held.
pub(super) fn look_up(recording: u32, now: u64, registers: [u64; 3], stack: &[u8]) -> (u64, bool) {
    // SAFETY: the caller holds the lock, so nobody else uses it.
    let known = unsafe { &mut *KNOWN.0.get() };
    if RECORDING.swap(recording.into(), Ordering::Relaxed) != u64::from(recording) {
        // A child process writes to a file of its own.
        known.forget();
        known.read_at = 0;
    }
    if now.wrapping_sub(known.read_at) > FRESH_NS {
        known.read_maps();
        known.read_at = now;
    }
    if known.is_full || known.count == 0 {
        return (0, false);
    }
    let hash = known.hash(registers, stack);
    (hash, known.insert(hash))
}

impl Known {
    /// The hash of the words of a stack that matter.
    fn hash(&self, [ip, sp, fp]: [u64; 3], stack: &[u8]) -> u64 {
        let len = stack.len() as u64;
        let mut hash = mix(mix(self.code, ip), fp.wrapping_sub(sp));
        let mut last = (0, 0);
        for (word, place) in stack.chunks_exact(8).zip(0_u64..) {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            if word.wrapping_sub(sp) <= len {
                hash = mix(mix(hash, place), word.wrapping_sub(sp));
            } else if word >= self.first_code && word < END_OF_ADDRESSES && !self.is_data(word, &mut last) {
                hash = mix(mix(hash, place), word);
            }
        }
        hash | 1
    }

    /// Whether a word points to data. The last range that had one is looked at first.
    fn is_data(&self, word: u64, last: &mut (u64, u64)) -> bool {
        if word >= last.0 && word < last.1 {
            return true;
        }
        let ranges = self.ranges.get(..self.count).unwrap_or(&[]);
        let at = ranges.partition_point(|(_, end)| *end <= word);
        match ranges.get(at).filter(|(start, _)| *start <= word) {
            Some(range) => {
                *last = *range;
                true
            }
            None => false,
        }
    }

    /// Inserts a hash. Returns whether it was there.
    fn insert(&mut self, hash: u64) -> bool {
        if self.hashes.is_null() {
            match calls::map(None, PLACES * 8) {
                Some(memory) => self.hashes = memory.cast(),
                None => return false,
            }
        }
        if self.held * 2 > PLACES {
            self.forget();
        }
        let mut place = (hash >> 40) as usize % PLACES;
        loop {
            // SAFETY: the place is within the mapping.
            let held = unsafe { &mut *self.hashes.add(place) };
            if *held == hash {
                return true;
            }
            if *held == 0 {
                *held = hash;
                self.held += 1;
                return false;
            }
            place = (place + 1) % PLACES;
        }
    }

    fn forget(&mut self) {
        if !self.hashes.is_null() {
            // SAFETY: the mapping has as many places.
            unsafe { core::ptr::write_bytes(self.hashes, 0, PLACES) };
        }
        self.held = 0;
    }

    /// Reads where data and code are. Hashes are forgotten if code has changed.
    fn read_maps(&mut self) {
        (self.count, self.is_full, self.first_code) = (0, true, u64::MAX);
        let Some(file) = calls::open_to_read(b"/proc/self/maps\0") else { return };
        let before = self.code;
        (self.is_full, self.code) = (false, 0);
        let mut line = Line::default();
        loop {
            let count = calls::read(file, &mut self.buffer);
            if count == 0 {
                break;
            }
            for at in 0..count {
                let byte = self.buffer.get(at).copied().unwrap_or(0);
                if line.take(byte) {
                    self.add(&line);
                    line = Line::default();
                }
            }
        }
        calls::close(file);
        if before != self.code {
            self.forget();
        }
    }

    /// Adds the range of a line.
    fn add(&mut self, line: &Line) {
        let Line { start, end, is_code, .. } = *line;
        if is_code {
            self.first_code = self.first_code.min(start);
            self.code = mix(mix(self.code, start), end);
            return;
        }
        let last = self.count.checked_sub(1).and_then(|last| self.ranges.get_mut(last));
        if let Some(last) = last.filter(|last| last.1 == start) {
            last.1 = end;
        } else if let Some(place) = self.ranges.get_mut(self.count) {
            *place = (start, end);
            self.count += 1;
        } else {
            self.is_full = true;
        }
    }
}

/// A line of `/proc/self/maps`, as far as it was read: `START-END rwxp ...`.
#[derive(Clone, Copy, Default)]
struct Line {
    start: u64,
    end: u64,
    is_code: bool,
    /// How many fields have ended.
    fields: u32,
}

impl Line {
    /// Takes the next byte. Returns whether it has ended the line.
    fn take(&mut self, byte: u8) -> bool {
        match (self.fields, byte) {
            (_, b'\n') => return true,
            (0, b'-') | (1 | 2, b' ') => self.fields += 1,
            (0, _) => self.start = self.start << 4 | digit(byte),
            (1, _) => self.end = self.end << 4 | digit(byte),
            (2, b'x') => self.is_code = true,
            _ => {}
        }
        false
    }
}

fn digit(byte: u8) -> u64 {
    match byte {
        b'0'..=b'9' => u64::from(byte - b'0'),
        b'a'..=b'f' => u64::from(byte - b'a' + 10),
        _ => 0,
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Box<Known> {
        let mut known = Box::new(Known {
            ranges: [(0, 0); MAX_RANGES],
            count: 0,
            is_full: false,
            first_code: u64::MAX,
            code: 0,
            read_at: 0,
            hashes: core::ptr::null_mut(),
            held: 0,
            buffer: [0; 4096],
        });
        let mut line = Line::default();
        for byte in b"1000-2000 r-xp 0 x\n2000-3000 r--p 0 y-z\n3000-4000 rw-p 0 \n7000-8000 rwxp 0\n" {
            if line.take(*byte) {
                known.add(&line);
                line = Line::default();
            }
        }
        known
    }

    fn hash(known: &Known, words: [u64; 4]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        known.hash([0x1100, 0x9000, 0x9010], &bytes)
    }

    #[test]
    fn only_words_that_matter_are_hashed() {
        let known = known();
        assert_eq!((known.count, known.ranges[0], known.first_code), (1, (0x2000, 0x4000), 0x1000));
        let first = hash(&known, [0x1234, 7, 0x2500, 0x9018]);
        assert_eq!(hash(&known, [0x1234, 999, 0x3fff, 0x9018]), first, "numbers and data");
        for other in [
            [0x1235, 7, 0x2500, 0x9018],
            [0x1234, 7, 0x2500, 0x9010],
            // Memory that is not known may be code.
            [0x1234, 7, 0x5000, 0x9018],
            [7, 0x1234, 0x2500, 0x9018],
        ] {
            assert_ne!(hash(&known, other), first, "{other:x?}");
        }
    }

    #[test]
    fn a_stack_is_known_the_second_time() {
        let mut known = known();
        assert!(!known.insert(9) && known.insert(9) && !known.insert(11));
        known.forget();
        assert!(!known.insert(9));
    }
}
