//! Copies one record out of a ring, without the unused bytes of its stack copy.
//!
//! The kernel reserves the requested room and fills the part that the stack has. The copied-out record has
//! the same layout with less room, so parsers need no special case. Often other memory follows a stack, and
//! the kernel copies that too. If the root of a thread's stack is known, what follows it is omitted as well.

use nyquist_perf::abi::record;
use nyquist_perf::{Header, SampleLayout, StackPlace};

use super::stack_bases::StackBases;

/// How many bytes are copied beyond the outermost word that walks to a root have read so far.
const BEHIND_ROOT: u64 = 512;

/// A record that was copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The length of the copied record.
    pub(crate) len: usize,
    /// Whether it is a sample whose stack may continue beyond its copy: the copy fills all its room, or does
    /// not reach the root.
    pub(crate) may_go_on: bool,
}

/// Copies a record to the start of `out`, which has room for it. `read` copies bytes of the record from an
/// offset on; `roots` contains where stacks end, as far as known.
pub(crate) fn compact(
    read: impl Fn(usize, &mut [u8]),
    header: Header,
    (layout, roots): (&SampleLayout, &StackBases),
    out: &mut [u8],
) -> Compacted {
    let whole = usize::from(header.size).min(out.len());
    let stack = if header.kind == record::SAMPLE { layout.stack(&read, whole) } else { None };
    let Some(stack) = stack else {
        read(0, &mut out[..whole]);
        return Compacted { len: whole, may_go_on: false };
    };
    let (len, may_go_on) = stack_bytes(&read, &stack, (layout, roots));
    Compacted { len: stack.copy_shortened(read, len, out), may_go_on }
}

/// How many bytes of a copy are used, and whether the stack may continue beyond them.
pub(super) fn stack_bytes(
    read: &impl Fn(usize, &mut [u8]),
    stack: &StackPlace,
    (layout, roots): (&SampleLayout, &StackBases),
) -> (usize, bool) {
    let up_to_root = up_to_root(read, stack, layout, roots);
    let lacks_root = up_to_root.is_some_and(|up_to_root| lacks_root(stack, up_to_root));
    let len = up_to_root.map_or(stack.len, |up_to_root| stack.len.min(up_to_root));
    (len, len == stack.room || lacks_root)
}

/// The size of a stack up to its root, if that is known.
fn up_to_root(
    read: &impl Fn(usize, &mut [u8]),
    stack: &StackPlace,
    layout: &SampleLayout,
    roots: &StackBases,
) -> Option<usize> {
    let root = roots.get(SampleLayout::thread(read))?;
    let distance = root.checked_sub(layout.stack_pointer(read, stack)?)?;
    usize::try_from(distance.checked_add(BEHIND_ROOT)?.checked_next_multiple_of(8)?).ok()
}

/// Whether a copy ends before the root although it has room. In an interrupt, the kernel cannot map a page
/// that the thread has not used yet, such as a part of an array in a frame. The copy ends at such a page, and
/// everything beyond it is missing.
fn lacks_root(stack: &StackPlace, up_to_root: usize) -> bool {
    up_to_root <= stack.room && stack.len + BEHIND_ROOT as usize <= up_to_root
}

#[cfg(test)]
mod tests {
    use nyquist_perf::{Body, ReadFormat, RecordFormat, UserStackCopy, parse_record};

    use super::*;
    use crate::linux::arch;
    use crate::linux::options::CallGraph;
    use crate::linux::perf::attr::{Common, Features, Reach, Trigger};

    /// The number of registers in samples.
    const REGISTERS: u32 = arch::perf::USER_REGISTERS.count_ones();

    /// A sample as the kernel writes it: with `room` bytes for the stack, of which `len` are used.
    fn sample(format: &RecordFormat, chain: u64, registers: bool, room: u64, len: u64) -> Vec<u8> {
        let mut words = vec![1, 2, 3, 4, 5, 6];
        if format.read_format.contains(ReadFormat::GROUP) {
            words.extend([2, 70, 71, 72, 73, 74, 75]);
        } else {
            words.extend([70, 71, 72]);
        }
        words.extend([chain].into_iter().chain(0..chain));
        words.push(if registers { 2 } else { 0 });
        let value = |register: u32| if register == arch::perf::STACK_POINTER { 7 } else { register.into() };
        words.extend((0..REGISTERS).filter(|_| registers).map(value));
        words.push(room);
        words.extend((0..room / 8).map(|word: u64| word.wrapping_mul(0x0101_0101_0101_0101)));
        words.extend((room > 0).then_some(len));
        let size = (8 + 8 * words.len()) as u16;
        let header = [&record::SAMPLE.to_le_bytes()[..], &2_u16.to_le_bytes(), &size.to_le_bytes()].concat();
        header.into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    fn skimmed(bytes: &[u8], format: &RecordFormat) -> Vec<u8> {
        skimmed_and_going_on(bytes, format).0
    }

    fn skimmed_and_going_on(bytes: &[u8], format: &RecordFormat) -> (Vec<u8>, bool) {
        skimmed_up_to(bytes, format, &StackBases::default())
    }

    fn skimmed_up_to(bytes: &[u8], format: &RecordFormat, roots: &StackBases) -> (Vec<u8>, bool) {
        let read = |at: usize, out: &mut [u8]| out.copy_from_slice(&bytes[at..at + out.len()]);
        let mut out = vec![0xee; 1 << 16];
        let header = Header::parse(bytes).unwrap();
        let Compacted { len, may_go_on } =
            compact(read, header, (&SampleLayout::new(format, arch::perf::STACK_POINTER), roots), &mut out);
        out.truncate(len);
        (out, may_go_on)
    }

    fn stack_of<'a>(bytes: &'a [u8], format: &RecordFormat) -> UserStackCopy<'a> {
        let record = parse_record(bytes, format).unwrap();
        match record.body {
            Body::Sample(sample) => sample.user_stack.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn formats() -> [RecordFormat; 2] {
        [Trigger::CpuClock, Trigger::Cycles].map(|trigger| {
            let features = Features { trigger, ..Features::ALL };
            let reach = Reach::Thread { from_exec: true };
            Common { features, reach, switches: false, call_graph: CallGraph::Auto, events_beside: false }
                .format()
        })
    }

    #[test]
    fn only_the_bytes_that_are_there_are_copied() {
        for format in formats() {
            for (len, chain, registers) in [(0, 0, true), (1, 3, true), (8, 5, false), (1000, 127, true)] {
                let whole = sample(&format, chain, registers, 32768, len);
                let short = skimmed(&whole, &format);
                assert!(short.len() < whole.len() - 31_000, "{} bytes", short.len());
                assert_eq!(stack_of(&short, &format).bytes, stack_of(&whole, &format).bytes);
                assert!(stack_of(&short, &format).room > len as usize, "the stack itself ended");
            }
        }
    }

    #[test]
    fn all_other_fields_stay_as_they_were() {
        for format in formats() {
            let whole = sample(&format, 3, true, 4096, 16);
            let short = skimmed(&whole, &format);
            let [whole, short] = [&whole, &short].map(|bytes| parse_record(bytes, &format).unwrap());
            let (Body::Sample(mut whole_sample), Body::Sample(short_sample)) = (whole.body, short.body)
            else {
                panic!("no samples")
            };
            whole_sample.user_stack = short_sample.user_stack;
            assert_eq!((whole.id, whole_sample), (short.id, short_sample));
        }
    }

    #[test]
    fn a_copy_that_fills_its_room_still_says_so() {
        for format in formats() {
            let whole = sample(&format, 3, true, 4096, 4096);
            assert_eq!(skimmed_and_going_on(&whole, &format), (whole, true));
            let shorter = sample(&format, 3, true, 4096, 4088);
            assert!(!skimmed_and_going_on(&shorter, &format).1);
        }
    }

    #[test]
    fn what_lies_behind_the_root_is_left_out() {
        for format in formats() {
            // The thread id is 0, and the stack pointer is 7.
            let roots = StackBases::default();
            let check = |root: Option<u64>, registers: bool, len: u64, expected: usize, goes_on: bool| {
                roots.set(0, root);
                let whole = sample(&format, 3, registers, 32768, len);
                let (short, may_go_on) = skimmed_up_to(&whole, &format, &roots);
                let (whole, short) = (stack_of(&whole, &format), stack_of(&short, &format));
                assert_eq!(short.bytes, &whole.bytes[..expected], "a root at {root:?} of {len}");
                assert_eq!((may_go_on, short.room > expected), (goes_on, expected < 32768), "of {len}");
            };
            let behind = BEHIND_ROOT as usize;
            check(None, true, 32768, 32768, true);
            check(Some(8000), true, 32768, 8000 + behind, false);
            check(Some(8000), true, 8008, 8008, false);
            check(Some(8000), true, 8000, 8000, true);
            check(Some(8000), true, 4000, 4000, true);
            check(Some(32000), true, 32768, 32000 + behind, false);
            check(Some(40000), true, 4000, 4000, false);
            check(Some(40000), true, 32768, 32768, true);
            check(Some(8000), false, 32768, 32768, true);
            roots.set(1, Some(8000));
            check(None, true, 32768, 32768, true);
        }
    }

    #[test]
    fn a_root_below_the_stack_pointer_is_anothers() {
        let [format, _] = formats();
        let mut whole = sample(&format, 0, true, 32768, 32768);
        let registers_at = whole.len() - 32768 - 16 - 8 * REGISTERS as usize;
        whole[registers_at + 8 * arch::perf::STACK_POINTER as usize..][..8]
            .copy_from_slice(&0x9000_u64.to_ne_bytes());
        let roots = StackBases::default();
        for (root, goes_on) in [(0x8ff8, true), (0x9000, false)] {
            roots.set(0, Some(root));
            assert_eq!(skimmed_up_to(&whole, &format, &roots).1, goes_on, "{root:#x}");
        }
    }

    #[test]
    fn what_is_laid_out_otherwise_is_copied_whole() {
        let [format, _] = formats();
        let no_stack = sample(&format, 3, true, 0, 0);
        assert_eq!(skimmed(&no_stack, &format), no_stack);
        let too_long = sample(&format, 3, true, 64, 65);
        assert_eq!(skimmed(&too_long, &format), too_long);
        let mut long_chain = sample(&format, 3, true, 64, 8);
        long_chain[8 + 9 * 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(skimmed(&long_chain, &format), long_chain);
        let mut other = sample(&format, 3, true, 64, 8);
        other[..4].copy_from_slice(&record::LOST.to_le_bytes());
        assert_eq!(skimmed(&other, &format), other);
    }
}
