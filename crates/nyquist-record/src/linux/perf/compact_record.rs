//! Copies one record out of a ring, without the unused bytes of its stack copy.
//!
//! The kernel reserves the requested room and fills the part that the stack has. The copied-out record has
//! the same layout with less room, so parsers need no special case.

use nyquist_perf::abi::record;
use nyquist_perf::{Header, SampleLayout};

use super::outer_stacks::{StackCopyObserver, UsedPart};

/// A record that was copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactRecord {
    /// The length of the copied record.
    pub(crate) len: usize,
    /// Whether it is a sample whose stack may continue beyond its copy.
    pub(crate) may_go_on: bool,
}

/// Copies a record to the start of `out`, which has room for it. `read` copies bytes of the record from an
/// offset on. The observer says which part of a stack copy is needed.
pub(super) fn compact(
    read: impl Fn(usize, &mut [u8]),
    header: Header,
    (layout, observer): (&SampleLayout, &impl StackCopyObserver),
    out: &mut [u8],
) -> CompactRecord {
    let size = usize::from(header.size).min(out.len());
    let stack = if header.kind == record::SAMPLE { layout.stack(&read, size) } else { None };
    let Some(stack) = stack else {
        read(0, &mut out[..size]);
        return CompactRecord { len: size, may_go_on: false };
    };
    let UsedPart { len, may_go_on } = observer.used_part(&read, &stack, layout);
    CompactRecord { len: stack.copy_shortened(read, len, out), may_go_on }
}

#[cfg(test)]
pub(super) mod tests {
    use nyquist_perf::{RecordBody, RecordFormat, SampleType, UserStackCopy, parse_record};

    use super::*;
    use crate::linux::arch;
    use crate::linux::perf::attr::tests::common;
    use crate::linux::perf::attr::{Features, Reach};

    /// The number of registers in samples.
    pub(crate) const REGISTERS: u32 = arch::perf::USER_REGISTERS.count_ones();

    /// A sample as the kernel writes it: with `room` bytes for the stack, of which `len` are used.
    pub(crate) fn sample(format: &RecordFormat, chain: u64, registers: bool, room: u64, len: u64) -> Vec<u8> {
        let mut words = vec![1, 2, 3, 4, 5, 6];
        if format.sample_type.contains(SampleType::READ) {
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

    /// The record as it is copied out, and whether its stack may continue beyond its copy.
    pub(crate) fn compacted(
        bytes: &[u8],
        format: &RecordFormat,
        observer: &impl StackCopyObserver,
    ) -> (Vec<u8>, bool) {
        let read = |at: usize, out: &mut [u8]| out.copy_from_slice(&bytes[at..at + out.len()]);
        let mut out = vec![0xee; 1 << 16];
        let header = Header::parse(bytes).unwrap();
        let layout = SampleLayout::new(format, arch::perf::STACK_POINTER);
        let CompactRecord { len, may_go_on } = compact(read, header, (&layout, observer), &mut out);
        out.truncate(len);
        (out, may_go_on)
    }

    /// The record as it is copied out when nothing observes it.
    fn shortened(bytes: &[u8], format: &RecordFormat) -> Vec<u8> {
        compacted(bytes, format, &()).0
    }

    pub(crate) fn stack_of<'a>(bytes: &'a [u8], format: &RecordFormat) -> UserStackCopy<'a> {
        let record = parse_record(bytes, format).unwrap();
        match record.body {
            RecordBody::Sample(sample) => sample.user_stack.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The layouts of samples without and with a count.
    pub(crate) fn formats() -> [RecordFormat; 2] {
        let plain = common(Features::ALL, Reach::Thread { from_exec: true }).format();
        [plain, RecordFormat { sample_type: plain.sample_type.with(SampleType::READ), ..plain }]
    }

    #[test]
    fn only_the_bytes_that_are_there_are_copied() {
        for format in formats() {
            for (len, chain, registers) in [(0, 0, true), (1, 3, true), (8, 5, false), (1000, 127, true)] {
                let whole = sample(&format, chain, registers, 32768, len);
                let short = shortened(&whole, &format);
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
            let short = shortened(&whole, &format);
            let [whole, short] = [&whole, &short].map(|bytes| parse_record(bytes, &format).unwrap());
            let (RecordBody::Sample(mut whole_sample), RecordBody::Sample(short_sample)) =
                (whole.body, short.body)
            else {
                panic!("no samples")
            };
            whole_sample.user_stack = short_sample.user_stack;
            assert_eq!((whole.id, whole_sample), (short.id, short_sample));
        }
    }

    #[test]
    fn what_is_laid_out_otherwise_is_copied_whole() {
        let [format, _] = formats();
        let no_stack = sample(&format, 3, true, 0, 0);
        assert_eq!(shortened(&no_stack, &format), no_stack);
        let too_long = sample(&format, 3, true, 64, 65);
        assert_eq!(shortened(&too_long, &format), too_long);
        let mut long_chain = sample(&format, 3, true, 64, 8);
        long_chain[8 + 6 * 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(shortened(&long_chain, &format), long_chain);
        let mut other = sample(&format, 3, true, 64, 8);
        other[..4].copy_from_slice(&record::LOST.to_le_bytes());
        assert_eq!(shortened(&other, &format), other);
    }
}
