//! Which stacks were written already: the copy of a stack is written once, and later its hash alone.
//!
//! The hash has every word of the copy that can matter to a walk ([`CodeMap`]).

use super::calls;
use super::code_map::{CodeMap, mix};
use super::last_stack::{LastStack, WORD};
use crate::protocol::MAX_STACK;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

/// How many hashes are kept. When there are more, they are forgotten, and stacks are written again.
const PLACES: usize = 1 << 16;

/// Of how many threads the last stack is kept.
const THREADS: usize = 8;

/// A stack that is longer than its copy is hashed from a multiple of this on, which does not move with each call.
const STEP: u64 = 4096;

/// How long it is believed that memory has not changed.
const FRESH_NS: u64 = 20_000_000;

/// Where code is, and which stacks are known. Used with the process's lock held.
struct Known {
    map: CodeMap,
    read_at: u64,
    hashes: *mut u64,
    held: usize,
    last: [LastStack; THREADS],
}

struct Shared(UnsafeCell<Known>);

// SAFETY: it is used with the lock held.
unsafe impl Sync for Shared {}

static KNOWN: Shared = Shared(UnsafeCell::new(Known {
    map: CodeMap::EMPTY,
    read_at: 0,
    hashes: core::ptr::null_mut(),
    held: 0,
    last: [const { LastStack::NONE }; THREADS],
}));

/// The recording that the hashes belong to.
static RECORDING: AtomicU64 = AtomicU64::new(0);

/// The hash of a thread's stack, and whether it was known. The hash is 0 if none can be made. Called with the lock
/// held.
pub(super) fn look_up(
    (recording, thread): (u32, u32),
    now: u64,
    registers: [u64; 3],
    stack: &[u8],
) -> (u64, bool) {
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
    if !known.map.is_known() {
        return (0, false);
    }
    let hash = known.hash(thread, registers, stack);
    (hash, known.insert(hash))
}

impl Known {
    /// The hash of the words of a stack that matter, from the outermost on: most of them are those of the thread's last
    /// stack.
    fn hash(&mut self, thread: u32, [ip, sp, fp]: [u64; 3], stack: &[u8]) -> u64 {
        let end = sp.wrapping_add(stack.len() as u64);
        // What is not known to be the end of the stack moves with the stack pointer.
        let fixed = if stack.len() == MAX_STACK { (end & !(STEP - 1)).max(sp) } else { end };
        let (inner, outer) = stack.split_at((fixed.wrapping_sub(sp) as usize).min(stack.len()));
        let Self { map, last, .. } = self;
        let mut range = (0, 0);
        let mut add = |hash, word| map.add_word(hash, word, fixed, &mut range);
        let mut hash = match last.get_mut(thread as usize % THREADS) {
            Some(last) => last.hash((thread, fixed), inner, &mut add),
            None => 0,
        };
        for bytes in outer.rchunks_exact(WORD) {
            hash = add(hash, bytes.try_into().map_or(0, u64::from_le_bytes));
        }
        mix(mix(mix(mix(hash, map.code), ip), fp.wrapping_sub(sp)), stack.len() as u64) | 1
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
        let before = self.map.code;
        self.map.read();
        if before != self.map.code {
            self.forget();
        }
        // Words may mean something else now.
        for last in &mut self.last {
            last.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::large_stack_arrays, reason = "a test's stack has room for it")]
    fn known() -> Box<Known> {
        Box::new(Known {
            map: CodeMap::EMPTY,
            read_at: 0,
            hashes: core::ptr::null_mut(),
            held: 0,
            last: [const { LastStack::NONE }; THREADS],
        })
    }

    /// An address of code.
    fn code() -> u64 {
        mix as fn(u64, u64) -> u64 as usize as u64
    }

    #[test]
    fn a_stack_is_known_the_second_time() {
        let mut known = known();
        assert!(!known.insert(9) && known.insert(9) && !known.insert(11));
        known.forget();
        assert!(!known.insert(9));
    }

    #[test]
    fn the_hash_does_not_depend_on_the_last_stack() {
        let (mut known, mut anew) = (known(), known());
        known.map.read();
        anew.map.read();
        let (mut seed, end) = (1_u64, 0x7ffd_0000_0000_u64);
        let mut stack = vec![0_u8; MAX_STACK + 512];
        for turn in 0..300_u64 {
            // Calls and returns of different depths change the inner part.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let depth = 8 * (1 + (seed >> 33) as usize % (stack.len() / 8));
            let start = stack.len() - depth;
            for at in (start..start + depth.min(200)).step_by(8) {
                stack[at..at + 8].copy_from_slice(&(code() + turn % 7).to_le_bytes());
            }
            let copy = &stack[start..start + depth.min(MAX_STACK)];
            let registers = [0x5000_0000 + turn % 3, end - depth as u64, end];
            let thread = 1 + 8 * (turn % 2) as u32;
            anew.last.iter_mut().for_each(LastStack::forget);
            assert_eq!(
                known.hash(thread, registers, copy),
                anew.hash(thread, registers, copy),
                "turn {turn}"
            );
        }
    }

    #[test]
    fn each_word_of_a_stack_matters() {
        let mut known = known();
        known.map.read();
        let end = 0x7ffd_0000_0000_u64;
        for len in [8, 504, 512, 1024, 4104, MAX_STACK] {
            let mut stack = vec![0_u8; len];
            let registers = [0x5000_0000, end - len as u64, end];
            let first = known.hash(1, registers, &stack);
            for at in (0..len).step_by(8) {
                stack[at..at + 8].copy_from_slice(&code().to_le_bytes());
                assert_ne!(known.hash(1, registers, &stack), first, "{at} of {len}");
                stack[at..at + 8].fill(0);
            }
            assert_eq!(known.hash(1, registers, &stack), first);
        }
    }
}
