//! Which part of a stack copy is needed: up to the stack's base, if that is known.
//!
//! Often other memory follows a stack, and the kernel copies that too.

use nyquist_perf::{SampleLayout, StackPlace};

use super::stack_bases::StackBases;
use crate::linux::perf::outer_stacks::UsedPart;

/// How many bytes are used beyond the outermost word that walks to the root have read so far.
const BEYOND_BASE: usize = 512;

/// The needed part of a copy. The stack may continue beyond it if the copy fills all its room, does not reach
/// the base, or is like one at whose end a walk has ended. `by_kernel` is whether the kernel copies what lies beyond
/// copies that fill their room. `read` copies bytes of the sample from an offset on.
pub(super) fn used_part(
    read: &impl Fn(usize, &mut [u8]),
    stack: &StackPlace,
    layout: &SampleLayout,
    (bases, by_kernel): (&StackBases, bool),
) -> UsedPart {
    let up_to_base = up_to_base(read, stack, layout, bases);
    let lacks_base = match up_to_base {
        Some(up_to_base) => lacks_base(stack, up_to_base),
        None => bases.has_ended_early(SampleLayout::thread(read)),
    };
    let len = up_to_base.map_or(stack.len, |up_to_base| stack.len.min(up_to_base));
    let is_for_kernel = by_kernel && stack.len == stack.room;
    UsedPart { len, may_go_on: (len == stack.room || lacks_base) && !is_for_kernel }
}

/// The size of a stack up to its base, if that is known.
fn up_to_base(
    read: &impl Fn(usize, &mut [u8]),
    stack: &StackPlace,
    layout: &SampleLayout,
    bases: &StackBases,
) -> Option<usize> {
    let base = bases.get(SampleLayout::thread(read))?;
    let distance = base.checked_sub(layout.stack_pointer(read, stack)?)?;
    usize::try_from(distance.checked_add(BEYOND_BASE as u64)?.checked_next_multiple_of(8)?).ok()
}

/// Whether a copy ends before the base although it has room. In an interrupt, the kernel cannot map a page
/// that the thread has not used yet, such as a part of an array in a frame. The copy ends at such a page, and
/// everything beyond it is missing.
fn lacks_base(stack: &StackPlace, up_to_base: usize) -> bool {
    up_to_base <= stack.room && stack.len + BEYOND_BASE <= up_to_base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::arch;
    use crate::linux::perf::compact_record::tests::{REGISTERS, compacted, formats, sample, stack_of};
    use crate::linux::perf::deep_stacks::StackObserver;

    fn observer() -> StackObserver {
        StackObserver { bases: std::sync::Arc::default(), reports: None, by_kernel: false }
    }

    #[test]
    fn a_copy_that_fills_its_room_still_says_so() {
        for format in formats() {
            let whole = sample(&format, 3, true, 4096, 4096);
            assert_eq!(compacted(&whole, &format, &observer()), (whole, true));
            let shorter = sample(&format, 3, true, 4096, 4088);
            assert!(!compacted(&shorter, &format, &observer()).1);
        }
    }

    #[test]
    fn what_lies_beyond_the_base_is_left_out() {
        for format in formats() {
            // The thread id is 0, and the stack pointer is 7.
            let observer = observer();
            let check = |base: Option<u64>, registers: bool, len: u64, expected: usize, goes_on: bool| {
                observer.bases.set(0, base);
                let whole = sample(&format, 3, registers, 32768, len);
                let (short, may_go_on) = compacted(&whole, &format, &observer);
                let (whole, short) = (stack_of(&whole, &format), stack_of(&short, &format));
                assert_eq!(short.bytes, &whole.bytes[..expected], "a base at {base:?} of {len}");
                assert_eq!((may_go_on, short.room > expected), (goes_on, expected < 32768), "of {len}");
            };
            let beyond = BEYOND_BASE;
            check(None, true, 32768, 32768, true);
            check(Some(8000), true, 32768, 8000 + beyond, false);
            check(Some(8000), true, 8008, 8008, false);
            check(Some(8000), true, 8000, 8000, true);
            check(Some(8000), true, 4000, 4000, true);
            check(Some(32000), true, 32768, 32000 + beyond, false);
            check(Some(40000), true, 4000, 4000, false);
            check(Some(40000), true, 32768, 32768, true);
            check(Some(8000), false, 32768, 32768, true);
            observer.bases.set(1, Some(8000));
            check(None, true, 32768, 32768, true);
        }
    }

    #[test]
    fn what_the_kernel_copies_is_not_read_again() {
        for format in formats() {
            let observer = StackObserver { by_kernel: true, ..observer() };
            assert!(!compacted(&sample(&format, 3, true, 4096, 4096), &format, &observer).1);
            observer.bases.note_ended_early(0);
            assert!(!compacted(&sample(&format, 3, true, 4096, 4096), &format, &observer).1);
            assert!(compacted(&sample(&format, 3, true, 4096, 2048), &format, &observer).1);
        }
    }

    #[test]
    fn a_short_copy_goes_on_if_one_before_it_did() {
        for format in formats() {
            let observer = observer();
            let whole = sample(&format, 3, true, 4096, 2048);
            assert!(!compacted(&whole, &format, &observer).1);
            observer.bases.note_ended_early(0);
            assert!(compacted(&whole, &format, &observer).1);
            observer.bases.note_complete(0);
            assert!(!compacted(&whole, &format, &observer).1);
        }
    }

    #[test]
    fn a_base_below_the_stack_pointer_is_anothers() {
        let [format, _] = formats();
        let mut whole = sample(&format, 0, true, 32768, 32768);
        let registers_at = whole.len() - 32768 - 16 - 8 * REGISTERS as usize;
        whole[registers_at + 8 * arch::perf::STACK_POINTER as usize..][..8]
            .copy_from_slice(&0x9000_u64.to_ne_bytes());
        let observer = observer();
        for (base, goes_on) in [(0x8ff8, true), (0x9000, false)] {
            observer.bases.set(0, Some(base));
            assert_eq!(compacted(&whole, &format, &observer).1, goes_on, "{base:#x}");
        }
    }
}
