//! Samples whose stack may continue beyond its copy. The ring reader reports them to the thread that reads
//! the rest.

use nyquist_perf::{SampleLayout, StackPlace};

/// A copy beyond which the stack may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TruncatedStack {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time_ns: u64,
    /// The stack pointer, at which the copy begins.
    pub(crate) start: u64,
    /// The first address that was not copied.
    pub(crate) end: u64,
}

impl TruncatedStack {
    /// The copy in a sample, of which `len` bytes are valid. `read` copies bytes of the sample from an offset
    /// on.
    pub(super) fn of(
        read: &impl Fn(usize, &mut [u8]),
        stack: &StackPlace,
        len: usize,
        layout: &SampleLayout,
    ) -> Option<Self> {
        let start = layout.stack_pointer(read, stack)?;
        let mut time = [0; 8];
        read(layout.time_at(), &mut time);
        Some(Self {
            pid: SampleLayout::process(read),
            tid: SampleLayout::thread(read),
            time_ns: u64::from_le_bytes(time),
            start,
            end: start.checked_add(len as u64)?,
        })
    }

    /// The copy in a sample that was copied out of a ring.
    pub(super) fn in_sample(sample: &[u8], layout: &SampleLayout) -> Option<Self> {
        let read = |at: usize, out: &mut [u8]| {
            let from = sample.get(at..).and_then(|from| from.get(..out.len()));
            out.copy_from_slice(from.unwrap_or(&[0; 8][..out.len()]));
        };
        let stack = layout.stack(&read, sample.len())?;
        Self::of(&read, &stack, stack.len, layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::arch;
    use crate::linux::perf::attr::tests::common;
    use crate::linux::perf::attr::{Features, Reach};

    fn layout() -> SampleLayout {
        SampleLayout::new(&common(Features::ALL, Reach::Cpu).format(), arch::perf::STACK_POINTER)
    }

    /// A sample of process 7, thread 9 at 1000 ns, with stack pointer 0x5000 and `room` bytes for its stack.
    fn sample(abi: u64, room: u64, len: u64) -> Vec<u8> {
        let mut words = vec![0, 100, 0x1234, 9 << 32 | 7, 1000, 0, 1, 0, abi];
        let registers = 0..arch::perf::USER_REGISTERS.count_ones();
        let value =
            |register: u32| if register == arch::perf::STACK_POINTER { 0x5000 } else { register.into() };
        words.extend(registers.map(value));
        words.push(room);
        words.extend((0..room / 8).chain([len]));
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_copy_is_found() {
        let check = |abi, room, len, expected| {
            assert_eq!(
                TruncatedStack::in_sample(&sample(abi, room, len), &layout()),
                expected,
                "{abi} {room} {len}"
            );
        };
        let truncated = |len: u64| {
            Some(TruncatedStack { pid: 7, tid: 9, time_ns: 1000, start: 0x5000, end: 0x5000 + len })
        };
        check(2, 4096, 4096, truncated(4096));
        check(2, 4096, 4088, truncated(4088));
        check(1, 4096, 4096, None);
    }

    #[test]
    fn what_is_no_such_sample_is_passed_over() {
        for len in [0, 7, 40, 100, 300] {
            assert_eq!(TruncatedStack::in_sample(&sample(2, 4096, 4096)[..len], &layout()), None);
        }
    }
}
