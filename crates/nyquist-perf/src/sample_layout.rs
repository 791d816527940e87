//! Offsets of single fields of a record, for a reader that reads them in a ring without parsing the whole
//! record.
//!
//! The order of a sample's fields is that of `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`.
//! The functions have a `read` parameter that copies bytes of the record from an offset on, because a ring
//! cannot return a slice of a record that wraps around.

use crate::abi::record;
use crate::{Header, ReadFormat, RecordFormat, SampleType};

/// The registers are those of a 64-bit program (`PERF_SAMPLE_REGS_ABI_64`).
const BITS_64: u64 = 2;

/// The offsets of a sample's fields, as far as they are fixed. This is for an event whose samples begin
/// with its id, the instruction pointer and the thread. Its last fields are counters, a call chain, raw
/// data, registers and a stack copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    /// The offset of the time.
    time_at: usize,
    /// The distance of the time from the end of another record: it is in the trailer, `struct sample_id`.
    trailer_time: usize,
    /// The offset of the counter's value, or of the number of counters in a group.
    counters_at: usize,
    /// The size in bytes of a counter and its related fields; 0 if samples have none.
    counter_bytes: usize,
    /// Whether the counters are a group.
    group: bool,
    /// Whether raw data follows the call chain.
    raw: bool,
    /// Whether samples have stack copies, and a call chain before them.
    copies: bool,
    /// The size of the registers in bytes, if there are any.
    register_bytes: usize,
    /// The index of the stack pointer among the registers, if it is one of them.
    pointer_at: Option<usize>,
}

/// A sample's stack copy, at the end of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackPlace {
    /// The offset of the size of its space.
    size_at: usize,
    /// The number of copied bytes.
    pub len: usize,
    /// The space for them.
    pub room: usize,
}

impl SampleLayout {
    /// The offset of the id of the opened event in a sample (`PERF_SAMPLE_IDENTIFIER`).
    const EVENT_AT: usize = Header::LEN;
    /// The offset of the process in a sample (`PERF_SAMPLE_TID`), after the event's id and the instruction
    /// pointer.
    const PROCESS_AT: usize = Header::LEN + 16;
    /// The offset of the thread in a sample, after the process.
    const THREAD_AT: usize = Header::LEN + 20;

    /// The layout of an event's records, with the number of the machine's stack pointer register (see
    /// [`crate::abi`]).
    pub fn new(format: &RecordFormat, stack_pointer: u32) -> Self {
        let pointer = 1_u64.checked_shl(stack_pointer).filter(|bit| format.user_registers & bit != 0);
        let words = [
            SampleType::IDENTIFIER,
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::ADDR,
            SampleType::CPU,
            SampleType::PERIOD,
        ];
        let has = |bit: &&SampleType| format.sample_type.contains(**bit);
        let trailer = [
            SampleType::TIME,
            SampleType::ID,
            SampleType::STREAM_ID,
            SampleType::CPU,
            SampleType::IDENTIFIER,
        ];
        let counters = format.sample_type.contains(SampleType::READ);
        let extra = [ReadFormat::ID, ReadFormat::LOST];
        let counter_words = 1 + extra.iter().filter(|bit| format.read_format.contains(**bit)).count();
        Self {
            time_at: Header::LEN + 8 * words[..3].iter().filter(has).count(),
            trailer_time: 8 * trailer.iter().filter(has).count(),
            counters_at: Header::LEN + 8 * words.iter().filter(has).count(),
            counter_bytes: if counters { 8 * counter_words } else { 0 },
            raw: format.sample_type.contains(SampleType::RAW),
            copies: format.sample_type.contains(SampleType::CALLCHAIN.with(SampleType::STACK_USER)),
            group: counters && format.read_format.contains(ReadFormat::GROUP),
            register_bytes: 8 * format.user_registers.count_ones() as usize,
            pointer_at: pointer.map(|bit| 8 * (format.user_registers & (bit - 1)).count_ones() as usize),
        }
    }

    /// The offset of a sample's time.
    #[inline]
    pub fn time_at(&self) -> usize {
        self.time_at
    }

    /// The id of the opened event that a sample is of.
    pub fn event(read: &impl Fn(usize, &mut [u8])) -> u64 {
        word(read, Self::EVENT_AT)
    }

    /// The id of the opened event that a sample is of; `None` if the sample is too short.
    pub fn event_in(sample: &[u8]) -> Option<u64> {
        sample.get(Self::EVENT_AT..)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    /// A sample's thread; `None` if the sample is too short.
    pub fn thread_in(sample: &[u8]) -> Option<u32> {
        sample.get(Self::THREAD_AT..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// A sample's process.
    pub fn process(read: &impl Fn(usize, &mut [u8])) -> u32 {
        half_word(read, Self::PROCESS_AT)
    }

    /// A sample's thread.
    pub fn thread(read: &impl Fn(usize, &mut [u8])) -> u32 {
        half_word(read, Self::THREAD_AT)
    }

    /// The time of a record, in ns; `None` if it is too short to have one.
    pub fn time(&self, read: impl Fn(usize, &mut [u8]), header: Header) -> Option<u64> {
        let size = usize::from(header.size);
        let at =
            if header.kind == record::SAMPLE { self.time_at } else { size.checked_sub(self.trailer_time)? };
        (at >= Header::LEN && at + 8 <= size).then(|| word(&read, at))
    }

    /// Finds the stack copy in a sample of `size` bytes; `None` if there is none, or the layout is not as
    /// expected.
    pub fn stack(&self, read: &impl Fn(usize, &mut [u8]), size: usize) -> Option<StackPlace> {
        let word = |at: usize| -> Option<usize> {
            if at.checked_add(8)? > size {
                return None;
            }
            usize::try_from(word(read, at)).ok()
        };
        if !self.copies {
            return None;
        }
        let chain_at = if self.group {
            let counters = word(self.counters_at)?.checked_mul(self.counter_bytes)?;
            self.counters_at.checked_add(8)?.checked_add(counters)?
        } else {
            self.counters_at + self.counter_bytes
        };
        let chain = word(chain_at)?.checked_mul(8)?;
        let raw_at = chain_at.checked_add(8)?.checked_add(chain)?;
        let registers_at = if self.raw { raw_end(read, raw_at, size)? } else { raw_at };
        let registers = if word(registers_at)? == 0 { 0 } else { self.register_bytes };
        let size_at = registers_at.checked_add(8 + registers)?;
        let room = word(size_at)?;
        let fits = room != 0 && size_at.checked_add(16)?.checked_add(room)? == size;
        let len = if fits { word(size - 8)? } else { return None };
        (len <= room).then_some(StackPlace { size_at, len, room })
    }

    /// The stack pointer at which a stack copy begins; `None` if it is not that of a 64-bit program.
    pub fn stack_pointer(&self, read: &impl Fn(usize, &mut [u8]), stack: &StackPlace) -> Option<u64> {
        let pointer_at = self.pointer_at?;
        // Before the registers is their ABI.
        let registers_at =
            stack.size_at.checked_sub(self.register_bytes).filter(|at| *at >= Header::LEN + 8)?;
        let is_there = word(read, registers_at - 8) == BITS_64;
        is_there.then(|| word(read, registers_at + pointer_at))
    }
}

impl StackPlace {
    /// Copies the sample into `out`, which has space for all of it, with only the first `len` bytes of its
    /// stack copy. Returns the new length of the sample.
    ///
    /// The new size of the copy is the length of the stack, plus one word if it did not fill the whole
    /// copy. This preserves the information whether the copy ends because the stack does.
    pub fn copy_shortened(&self, read: impl Fn(usize, &mut [u8]), len: usize, out: &mut [u8]) -> usize {
        let retained = self.room.min((len / 8 + 1) * 8);
        let data_at = self.size_at + 8;
        let shorter = data_at + retained + 8;
        read(0, &mut out[..data_at + retained]);
        out[Header::SIZE_AT..Header::LEN].copy_from_slice(&(shorter as u16).to_le_bytes());
        out[self.size_at..data_at].copy_from_slice(&(retained as u64).to_le_bytes());
        out[data_at + retained..shorter].copy_from_slice(&(len as u64).to_le_bytes());
        shorter
    }
}

/// The end of raw data that begins with its length, in a sample of `size` bytes. The kernel pads it to a
/// whole word.
fn raw_end(read: &impl Fn(usize, &mut [u8]), at: usize, size: usize) -> Option<usize> {
    let len = if at.checked_add(8)? <= size { half_word(read, at) } else { return None };
    at.checked_add(4)?.checked_add(usize::try_from(len).ok()?).filter(|end| end.is_multiple_of(8))
}

#[inline]
fn half_word(read: &impl Fn(usize, &mut [u8]), at: usize) -> u32 {
    let mut bytes = [0; 4];
    read(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

#[inline]
fn word(read: &impl Fn(usize, &mut [u8]), at: usize) -> u64 {
    let mut bytes = [0; 8];
    read(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{aarch64, x86};
    use crate::{Record, RecordBody, parse_record};

    fn format(read_format: ReadFormat) -> RecordFormat {
        let sample_type = [
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::CPU,
            SampleType::PERIOD,
            SampleType::READ,
            SampleType::CALLCHAIN,
            SampleType::REGS_USER,
            SampleType::STACK_USER,
        ];
        RecordFormat {
            sample_type: sample_type.into_iter().fold(SampleType::IDENTIFIER, SampleType::with),
            read_format,
            user_registers: x86::ALL_64,
            sample_id_all: true,
            ..RecordFormat::default()
        }
    }

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = (Header::LEN + 8 * words.len()) as u16;
        let header = [&kind.to_le_bytes()[..], &2_u16.to_le_bytes(), &size.to_le_bytes()].concat();
        header.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
    }

    fn reader(bytes: &[u8]) -> impl Fn(usize, &mut [u8]) {
        |at, out: &mut [u8]| out.copy_from_slice(&bytes[at..at + out.len()])
    }

    #[test]
    fn fields_are_where_the_parser_finds_them() {
        for (read_format, counters) in [
            (ReadFormat::ID, vec![70, 71]),
            (ReadFormat::ID.with(ReadFormat::GROUP), vec![2, 70, 71, 72, 73]),
        ] {
            let format = format(read_format);
            let layout = SampleLayout::new(&format, x86::SP);
            let mut words = vec![1, 2, 9 << 32 | 7, 1000, 5, 6];
            words.extend(counters);
            words.extend([2, 0x10, 0x11, BITS_64]);
            words.extend(100..100 + u64::from(x86::ALL_64.count_ones()));
            words.extend([32, 21, 22, 23, 24, 16]);
            let bytes = record(record::SAMPLE, &words);
            let read = reader(&bytes);
            let Record { header, id, body: RecordBody::Sample(sample) } =
                parse_record(&bytes, &format).unwrap()
            else {
                panic!("no sample")
            };
            assert_eq!(id.task, Some((SampleLayout::process(&read), SampleLayout::thread(&read))));
            assert_eq!(id.time, layout.time(&read, header));
            let stack = layout.stack(&read, bytes.len()).unwrap();
            assert_eq!((stack.len, stack.room), (16, 32));
            let registers = sample.user_registers.unwrap();
            assert_eq!(layout.stack_pointer(&read, &stack), registers.get(x86::SP));
            let mut out = vec![0; bytes.len()];
            let len = stack.copy_shortened(&read, 8, &mut out);
            let RecordBody::Sample(shorter) = parse_record(&out[..len], &format).unwrap().body else {
                panic!()
            };
            assert_eq!(shorter.user_stack.unwrap().bytes, 21_u64.to_le_bytes());
        }
    }

    #[test]
    fn each_architecture_has_its_stack_pointer() {
        let (registers, pointer) = (aarch64::ALL_64, aarch64::SP);
        let format = RecordFormat { user_registers: registers, ..format(ReadFormat::ID) };
        let layout = SampleLayout::new(&format, pointer);
        let mut words = vec![1, 2, 9 << 32 | 7, 1000, 5, 6, 70, 71, 1, 0x10, BITS_64];
        words.extend(100..100 + u64::from(registers.count_ones()));
        words.extend([8, 21, 8]);
        let bytes = record(record::SAMPLE, &words);
        let read = reader(&bytes);
        let stack = layout.stack(&read, bytes.len()).unwrap();
        assert_eq!(layout.stack_pointer(&read, &stack), Some(131));
        let without = RecordFormat { user_registers: registers & !(1 << pointer), ..format };
        assert_eq!(SampleLayout::new(&without, pointer).stack_pointer(&read, &stack), None);
    }

    #[test]
    fn raw_data_and_an_address_are_stepped_over() {
        let plain = format(ReadFormat::ID);
        let sample_type = plain.sample_type.with(SampleType::ADDR).with(SampleType::RAW);
        let format = RecordFormat { sample_type, ..plain };
        let layout = SampleLayout::new(&format, x86::SP);
        let mut words = vec![1, 2, 9 << 32 | 7, 1000, 0xaddf, 5, 6, 70, 71, 2, 0x10, 0x11, 12, 99];
        words.push(BITS_64);
        words.extend(100..100 + u64::from(x86::ALL_64.count_ones()));
        words.extend([16, 21, 22, 8]);
        let bytes = record(record::SAMPLE, &words);
        let read = reader(&bytes);
        let Record { id, body: RecordBody::Sample(sample), .. } = parse_record(&bytes, &format).unwrap()
        else {
            panic!("no sample")
        };
        assert_eq!((id.time, sample.data_address), (Some(1000), Some(0xaddf)));
        let stack = layout.stack(&read, bytes.len()).unwrap();
        assert_eq!((stack.len, stack.room), (8, 16));
        assert_eq!(layout.stack_pointer(&read, &stack), sample.user_registers.unwrap().get(x86::SP));
        // A length that is not a multiple of a word, or exceeds the record, has no known layout.
        for wrong in [13_u32, u32::MAX - 3] {
            let mut bytes = bytes.clone();
            bytes[8 + 12 * 8..][..4].copy_from_slice(&wrong.to_le_bytes());
            assert_eq!(layout.stack(&reader(&bytes), bytes.len()), None, "{wrong}");
        }
    }

    #[test]
    fn another_record_has_its_time_in_its_trailer() {
        let format = format(ReadFormat::ID);
        let bytes = record(record::LOST, &[100, 3, 9 << 32 | 7, 1000, 5, 1]);
        let parsed = parse_record(&bytes, &format).unwrap();
        let layout = SampleLayout::new(&format, x86::SP);
        assert_eq!(
            (parsed.id.time, Some(1000)),
            (layout.time(reader(&bytes), parsed.header), parsed.id.time)
        );
        let short = Header { size: 16, ..parsed.header };
        assert_eq!(layout.time(reader(&bytes), short), None);
    }
}
