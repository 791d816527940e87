//! The instructions of generated code, read from a living process when a walk cannot continue without them.
//! Compilers that write no unwind information also generate pieces without a frame pointer, such as Python's
//! trampolines (`Python/asm_trampoline.S`).

use crate::event::{Pid, Timestamp};
use crate::mappings::Range;
use crate::targets::Targets;
use nyquist_object::Avma;
use nyquist_unwind::{AddressSpace, Module};
use rustc_hash::FxHashMap;
use std::ops;
use std::sync::Arc;

/// The size of a block that is read at once. Blocks are aligned to it.
const BLOCK: u64 = 1 << 16;

/// The most blocks that are read of a process.
const MAX_BLOCKS: usize = 64;

/// The time after which a block may be read again, in ns.
const READ_AGAIN_AFTER: u64 = 100_000_000;

/// Which blocks of a process's generated code were read, by their addresses, with the time of the sample that
/// needed them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadInstructions(FxHashMap<u64, Timestamp>);

impl ReadInstructions {
    /// Forgets the blocks of a range that is mapped anew, because other code may be there.
    pub(crate) fn forget(&mut self, start: Avma, len: u64) {
        let end = start.0.saturating_add(len);
        self.0.retain(|block, _| *block >= end || block.saturating_add(BLOCK) <= start.0);
    }

    /// How many blocks were read.
    pub(crate) fn block_count(&self) -> usize {
        self.0.len()
    }

    /// Reads the instructions around an address in a range of generated code, and passes them to the
    /// unwinder. Returns the addresses that were read. Nothing is read if the block was read recently, or if
    /// the process is gone or may not be read.
    pub(crate) fn read_around(
        &mut self,
        (pid, address, now): (Pid, Avma, Timestamp),
        range: &Range,
        (space, targets): (&mut AddressSpace, &Targets),
    ) -> Option<ops::Range<u64>> {
        let block = address.0 & !(BLOCK - 1);
        let is_known = self.0.get(&block);
        let is_due = match is_known {
            Some(read) => now.0.saturating_sub(read.0) >= READ_AGAIN_AFTER,
            None => self.0.len() < MAX_BLOCKS,
        };
        if !is_due {
            return None;
        }
        self.0.insert(block, now);
        let (start, end) = (block.max(range.start.0), block.saturating_add(BLOCK).min(range.end.0));
        let instructions = read(targets, pid, start..end)?;
        let (start, len) = (Avma(start), instructions.len() as u64);
        space.map(start, len, start, Arc::new(Module::from_instructions(instructions)));
        Some(start.0..end)
    }
}

/// Bytes of a process's memory.
fn read(targets: &Targets, pid: Pid, range: ops::Range<u64>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start)?).ok()?];
    (targets.read_memory(pid, range.start, &mut bytes) == bytes.len()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the memory of a process is read in /proc")]
    fn instructions_are_read_again_when_they_changed() {
        let code = vec![0xc3_u8; 3 << 16];
        let start = Avma(code.as_ptr() as u64);
        let range = Range { start, end: Avma(start.0 + code.len() as u64), module: None };
        let (mut read, mut space) = (ReadInstructions::default(), AddressSpace::new());
        let targets = Targets::default();
        let mut check = |pid, address, now, expected| {
            let at = (Pid(pid), Avma(address), Timestamp(now));
            let read = read.read_around(at, &range, (&mut space, &targets)).is_some();
            assert_eq!(read, expected, "{pid} {address:#x} {now}");
        };
        let own = std::process::id();
        check(own, start.0 + 5, 1000, true);
        check(own, start.0 + 5, 2000, false);
        check(own, start.0 + 5, 1000 + READ_AGAIN_AFTER, true);
        check(own, start.0 + BLOCK + 5, 2000, true);
        check(own, start.0 + BLOCK + 5, 2001, false);
        // No process has this number.
        check(u32::MAX, start.0 + 2 * BLOCK + 5, 2000, false);
        read.forget(Avma(start.0 + BLOCK), 1);
        let mut check = |address, expected| {
            let at = (Pid(own), Avma(address), Timestamp(2002));
            let read = read.read_around(at, &range, (&mut space, &targets)).is_some();
            assert_eq!(read, expected, "{address:#x}");
        };
        check(start.0 + BLOCK + 5, true);
    }
}
