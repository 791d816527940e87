//! Counts the functions of a file for 64-bit x86 that keep a frame pointer, by which the kernel finds callers
//! (System V ABI for AMD64, figure 3.3).

#[cfg(feature = "disassembly")]
mod by_instructions;

use crate::guess::{FrameDescription, each_description};
use gimli::{CfaRule, Register, RegisterRule, UnwindContext};
use nyquist_object::elf::ElfSection;
use nyquist_object::{ByteSource, Elf, Svma};

/// DWARF's numbers of registers (System V ABI for AMD64, figure 3.36).
const RBP: Register = Register(6);
const RSP: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);

/// From the frame pointer to the end of the frame: the caller's frame pointer and the return address.
const RECORD: i64 = 16;

/// A sample of this many functions, from all over the file, represents the others.
const MAX_FUNCTIONS: usize = 4096;

/// Entries of unwind information that are much larger than those of compilers are skipped.
const MAX_ENTRY: usize = 16 << 10;

/// How functions with their own frame use the frame pointer. A function without one leaves the caller's frame
/// pointer unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePointers {
    /// The number of functions that were checked.
    pub functions: u32,
    /// How many of those keep a frame pointer.
    pub preserved: u32,
}

impl FramePointers {
    /// The share of functions that keep one, in per cent, rounded down.
    pub fn percent(self) -> u8 {
        (u64::from(self.preserved) * 100 / u64::from(self.functions.max(1))) as u8
    }

    /// Counts by the unwind information of `count` functions.
    pub(crate) fn by_unwind_info<S: ByteSource>(elf: &Elf<S>, count: usize) -> Option<Self> {
        let mut context = UnwindContext::new();
        let (step, mut number, mut found) = (count.div_ceil(MAX_FUNCTIONS).max(1), 0, Self::default());
        each_description(elf, |description| {
            if number % step == 0 && is_function(elf, Svma(description.entry.initial_address())) {
                found.count(keeps_by_rows(&description, &mut context));
            }
            number += 1;
        });
        found.of_any()
    }

    fn count(&mut self, keeps: Option<bool>) {
        self.functions += u32::from(keeps.is_some());
        self.preserved += u32::from(keeps == Some(true));
    }

    fn of_any(self) -> Option<Self> {
        (self.functions > 0).then_some(self)
    }
}

/// Whether code at an address is one of the program's own functions. Start and end code of the linker and the
/// C library is not, and neither are jumps to other modules.
fn is_function<S: ByteSource>(elf: &Elf<S>, address: Svma) -> bool {
    let is_inside = |section: &&ElfSection| {
        section.is_code()
            && address.0.checked_sub(section.address.0).is_some_and(|inside| inside < section.size)
    };
    let is_added = |name: &str| name.starts_with(".plt") || name == ".init" || name == ".fini";
    let section = elf.sections().iter().find(is_inside);
    section.is_some_and(|section| !is_added(&section.name)) && elf.entry_point() != Some(address)
}

/// Whether a function keeps a frame pointer, which is so if any of its rows finds the frame by it. `None` for
/// a function without a frame, and for one that nothing calls.
fn keeps_by_rows(description: &FrameDescription<'_, '_>, context: &mut UnwindContext<usize>) -> Option<bool> {
    let FrameDescription { section, bases, entry } = description;
    if entry.cie().entry_len() > MAX_ENTRY || entry.entry_len() > MAX_ENTRY {
        return None;
    }
    let mut rows = entry.rows(*section, bases, context).ok()?;
    let mut has_frame = false;
    while let Ok(Some(row)) = rows.next_row() {
        if matches!(row.register(RETURN_ADDRESS), Some(RegisterRule::Undefined)) {
            return None;
        }
        match *row.cfa() {
            CfaRule::RegisterAndOffset { register: RBP, offset: RECORD } => return Some(true),
            CfaRule::RegisterAndOffset { register: RSP, offset: 8 } => {}
            CfaRule::RegisterAndOffset { .. } | CfaRule::Expression(_) => has_frame = true,
        }
    }
    has_frame.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_whole_only_with_all_functions() {
        let percent = |preserved, functions| FramePointers { functions, preserved }.percent();
        assert_eq!((percent(0, 0), percent(1, 3), percent(999, 1000), percent(7, 7)), (0, 33, 99, 100));
    }
}
