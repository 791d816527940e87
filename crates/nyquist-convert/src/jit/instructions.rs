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

/// How much memory a block takes at most: its instructions, and the rules that are found in it.
pub(crate) const BLOCK_MEMORY: u64 = 4 * BLOCK;

/// The time after which a block may be read again, in ns.
const READ_AGAIN_AFTER: u64 = 100_000_000;

/// A block that was read, or could not be read.
#[derive(Clone, Debug)]
struct ReadBlock {
    /// The time of the sample that needed it.
    time: Timestamp,
    /// The addresses that were passed to the unwinder.
    passed: ops::Range<u64>,
}

/// Which blocks of a process's generated code were read, by their addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadInstructions(FxHashMap<u64, ReadBlock>);

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

    /// Takes all instructions from the unwinder, whose process has ended.
    pub(crate) fn release(&mut self, space: &mut AddressSpace) {
        for ReadBlock { passed, .. } in
            self.0.drain().map(|(_, block)| block).filter(|it| !it.passed.is_empty())
        {
            space.map_code(Avma(passed.start), passed.end - passed.start);
        }
    }

    /// Reads the instructions around an address in a range of generated code, and passes them to the
    /// unwinder. Returns the addresses that were read. Nothing is read if the block was read recently, if it is a
    /// new one and there is no `room`, or if the process is gone or may not be read.
    pub(crate) fn read_around(
        &mut self,
        (pid, address, now): (Pid, Avma, Timestamp),
        (range, room): (&Range, bool),
        (space, targets): (&mut AddressSpace, &Targets),
    ) -> Option<ops::Range<u64>> {
        let block = address.0 & !(BLOCK - 1);
        let is_due = match self.0.get(&block) {
            Some(read) => now.0.saturating_sub(read.time.0) >= READ_AGAIN_AFTER,
            None => room && self.0.len() < MAX_BLOCKS,
        };
        if !is_due {
            return None;
        }
        let known = self.0.entry(block).or_insert(ReadBlock { time: now, passed: 0..0 });
        known.time = now;
        let (start, end) = (block.max(range.start.0), block.saturating_add(BLOCK).min(range.end.0));
        let instructions = read(targets, pid, start..end)?;
        known.passed = start..end;
        space.map(Avma(start), end - start, Avma(start), Arc::new(Module::from_instructions(instructions)));
        Some(start..end)
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
            let read = read.read_around(at, (&range, true), (&mut space, &targets)).is_some();
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
            let has_read = |room, read: &mut ReadInstructions, space: &mut AddressSpace| {
                read.read_around(at, (&range, room), (space, &targets)).is_some()
            };
            assert!(!has_read(false, &mut read, &mut space), "there is no room");
            assert_eq!(has_read(true, &mut read, &mut space), expected, "{address:#x}");
        };
        check(start.0 + BLOCK + 5, true);
        assert_eq!(read.block_count(), 3, "with that of nobody");
        read.release(&mut space);
        assert_eq!(read.block_count(), 0);
    }
}
