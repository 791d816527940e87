//! Scans rings ahead of their reader for samples whose stacks must be read before they change.
//!
//! A wake-up costs the reader far more than the few samples of a moment are worth. The thread that reads deep
//! stacks is awake anyway then. It finds what it needs in the rings, and consumes nothing.

use std::sync::Arc;

use nyquist_perf::abi::record;
use nyquist_perf::{Header, RecordFormat, SampleLayout};

use super::stack_bases::StackBases;
use super::truncated_stack::TruncatedStack;
use super::used_part::used_part;
use crate::linux::arch;
use crate::linux::perf::outer_stacks::UsedPart;
use crate::linux::perf::ring_source::RingSource;
use crate::linux::sys::ring::RingView;

/// All rings that may contain samples.
#[derive(Debug)]
pub(crate) struct RingScanner {
    rings: Vec<ScannedRing>,
    layout: SampleLayout,
    bases: Arc<StackBases>,
    /// Whether the kernel copies what lies beyond copies that fill their room.
    by_kernel: bool,
}

/// One ring, and how far it has been scanned.
#[derive(Debug)]
struct ScannedRing {
    ring: RingView,
    seen: u64,
}

impl RingScanner {
    pub(crate) fn new<'a>(
        rings: impl Iterator<Item = &'a RingSource>,
        format: &RecordFormat,
        (bases, by_kernel): (Arc<StackBases>, bool),
    ) -> Self {
        let rings = rings.map(|source| ScannedRing { ring: source.ring.view(), seen: 0 }).collect();
        Self { rings, layout: SampleLayout::new(format, arch::perf::STACK_POINTER), bases, by_kernel }
    }

    /// Reports the copies of samples beyond which the stack may continue, for all samples since the last scan
    /// that are still in the rings.
    pub(crate) fn scan(&mut self, mut report: impl FnMut(TruncatedStack)) {
        let Self { rings, layout, bases, by_kernel } = self;
        let known = (&**bases, *by_kernel);
        for scanned in rings {
            let head = scanned.ring.head();
            scanned.seen = scanned.seen.max(scanned.ring.tail());
            while scanned.seen < head {
                let Some((size, truncated)) = scanned.record(layout, known).filter(|_| scanned.is_held())
                else {
                    break;
                };
                truncated.into_iter().for_each(&mut report);
                scanned.seen += size;
            }
        }
    }
}

impl ScannedRing {
    /// The size of the next record, and its copy if the stack may continue beyond it. Both are garbage if the
    /// record was released meanwhile.
    fn record(
        &self,
        layout: &SampleLayout,
        known: (&StackBases, bool),
    ) -> Option<(u64, Option<TruncatedStack>)> {
        let header = Header::parse(&self.ring.word(self.seen).to_ne_bytes()).ok()?;
        let size = usize::from(header.size);
        if size < Header::LEN {
            return None;
        }
        let is_sample = header.kind == record::SAMPLE;
        Some((size as u64, if is_sample { self.truncated(size, layout, known) } else { None }))
    }

    fn truncated(
        &self,
        size: usize,
        layout: &SampleLayout,
        known: (&StackBases, bool),
    ) -> Option<TruncatedStack> {
        let read = |at: usize, out: &mut [u8]| self.read(self.seen + at as u64, out);
        let stack = layout.stack(&read, size)?;
        let UsedPart { len, may_go_on } = used_part(&read, &stack, layout, known);
        if may_go_on { TruncatedStack::of(&read, &stack, len, layout) } else { None }
    }

    /// Reads a field, which is at most a word long and does not cross words.
    fn read(&self, position: u64, out: &mut [u8]) {
        let word = self.ring.word(position).to_ne_bytes();
        let field = word.get(position as usize % 8..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(field.unwrap_or(&[0; 8][..out.len()]));
    }

    /// Whether the next record had not been released yet when it was read.
    fn is_held(&self) -> bool {
        self.ring.tail() <= self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::perf::attr::tests::common;
    use crate::linux::perf::attr::{Features, Reach};
    use crate::linux::sys::limits::page_size;
    use crate::linux::sys::ring::tests::{Kernel, empty_ring};
    use crate::pool::Need;

    fn format() -> RecordFormat {
        let (features, reach) = (Features::ALL, Reach::Cpu);
        common(features, reach).format()
    }

    /// A ring of one page, and its writer.
    fn ring() -> (RingSource, Kernel) {
        let (ring, kernel) = empty_ring(page_size());
        (RingSource { ring, need: Need::Samples, wakers: Vec::new() }, kernel)
    }

    fn write(kernel: &mut Kernel, record: &[u8]) {
        for (word, offset) in record.chunks(8).zip((0..).step_by(8)) {
            kernel.write_at(offset, word);
        }
        kernel.advance(record.len() as u64);
    }

    /// A sample of process 7, thread 9, with stack pointer 0x5000 and room for 512 bytes of its stack, of
    /// which `len` are used.
    fn sample(time: u64, len: u64) -> Vec<u8> {
        let mut words = vec![100, 0x1234, 9 << 32 | 7, time, 0, 1, 0, 2];
        let registers = 0..arch::perf::USER_REGISTERS.count_ones();
        let value =
            |register: u32| if register == arch::perf::STACK_POINTER { 0x5000 } else { register.into() };
        words.extend(registers.map(value));
        words.push(512);
        words.extend((0..512 / 8).chain([len]));
        let size = (8 + 8 * words.len()) as u16;
        let header = [&record::SAMPLE.to_ne_bytes()[..], &2_u16.to_ne_bytes(), &size.to_ne_bytes()].concat();
        header.into_iter().chain(words.into_iter().flat_map(u64::to_ne_bytes)).collect()
    }

    fn found(scanner: &mut RingScanner) -> Vec<TruncatedStack> {
        let mut found = Vec::new();
        scanner.scan(|truncated| found.push(truncated));
        found
    }

    fn truncated(time_ns: u64) -> TruncatedStack {
        TruncatedStack { pid: 7, tid: 9, time_ns, start: 0x5000, end: 0x5200 }
    }

    #[test]
    fn truncated_copies_are_found_once_and_not_taken() {
        let (source, mut kernel) = ring();
        let mut scanner = RingScanner::new([&source].into_iter(), &format(), Default::default());
        assert_eq!(found(&mut scanner), []);
        write(&mut kernel, &sample(1, 512));
        write(&mut kernel, &[&record::LOST.to_ne_bytes()[..], &[0, 0, 16, 0], &[0xff; 8]].concat());
        write(&mut kernel, &sample(2, 504));
        write(&mut kernel, &sample(3, 512));
        assert_eq!(found(&mut scanner), [truncated(1), truncated(3)]);
        assert_eq!(found(&mut scanner), []);
        write(&mut kernel, &sample(4, 512));
        assert_eq!(found(&mut scanner), [truncated(4)]);
        assert_eq!((source.ring.tail(), source.ring.head()), (0, kernel.head));
    }

    #[test]
    fn the_scan_wraps_and_skips_records_given_back() {
        let (mut source, mut kernel) = ring();
        let mut scanner = RingScanner::new([&source].into_iter(), &format(), Default::default());
        for time in 1..50 {
            write(&mut kernel, &sample(time, 512));
            write(&mut kernel, &sample(100 + time, 512));
            source.ring.release(kernel.head - sample(0, 0).len() as u64);
            assert_eq!(found(&mut scanner), [truncated(100 + time)]);
            source.ring.release(kernel.head);
        }
        assert!(kernel.head > 4 * page_size() as u64);
    }

    #[test]
    fn a_record_given_back_during_a_look_is_ignored() {
        let (mut source, mut kernel) = ring();
        write(&mut kernel, &sample(1, 512));
        let scanned = ScannedRing { ring: source.ring.view(), seen: 0 };
        assert!(scanned.is_held());
        source.ring.release(kernel.head);
        assert!(!scanned.is_held());
    }

    #[test]
    fn a_record_without_a_size_ends_the_look() {
        let (source, mut kernel) = ring();
        let mut scanner = RingScanner::new([&source].into_iter(), &format(), Default::default());
        write(&mut kernel, &[0; 64]);
        write(&mut kernel, &sample(1, 512));
        assert_eq!(found(&mut scanner), []);
    }
}
