//! Copying one record out of a ring: of a stack copy only the bytes that are there.
//!
//! The kernel reserves the room that was asked for and fills as much of it as the stack has. What is copied out
//! is a record of the same layout with less room, so whoever parses it need not know.

use nyquist_perf::abi::record;
use nyquist_perf::{Header, ReadFormat, RecordFormat, SampleType};

/// Where a sample's fields are, as far as they are at fixed places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    /// The place of the counter's value, or of the number of a group's counters.
    counters_at: usize,
    /// The bytes of a counter with what belongs to it; 0 where samples have none.
    counter_bytes: usize,
    /// Whether the counters are a group's.
    group: bool,
    /// The bytes of the registers, where there are any.
    register_bytes: usize,
}

impl SampleLayout {
    /// The layout of the samples of an event with a call chain, registers and a stack copy, in this order the
    /// last fields.
    pub(crate) fn new(format: &RecordFormat) -> Self {
        let words = [
            SampleType::IDENTIFIER,
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::CPU,
            SampleType::PERIOD,
        ];
        let has = |bit: &&SampleType| format.sample_type.contains(**bit);
        let counters = format.sample_type.contains(SampleType::READ);
        let extra = [ReadFormat::ID, ReadFormat::LOST];
        let counter_words = 1 + extra.iter().filter(|bit| format.read_format.contains(**bit)).count();
        Self {
            counters_at: Header::LEN + 8 * words.iter().filter(has).count(),
            counter_bytes: if counters { 8 * counter_words } else { 0 },
            group: counters && format.read_format.contains(ReadFormat::GROUP),
            register_bytes: 8 * format.user_registers.count_ones() as usize,
        }
    }
}

/// Copies the record at `position` to the start of `out`, which has room for it, and says how long the copy is.
/// `read` copies bytes from a position of the ring on.
pub(crate) fn skim(
    read: impl Fn(u64, &mut [u8]),
    position: u64,
    header: Header,
    layout: &SampleLayout,
    out: &mut [u8],
) -> usize {
    let whole = usize::from(header.size).min(out.len());
    let cut = if header.kind == record::SAMPLE { stack(&read, position, whole, layout) } else { None };
    let Some(Stack { size_at, len, room }) = cut else {
        read(position, &mut out[..whole]);
        return whole;
    };
    // The room is what the stack fills, and one word more where it did not fill all that there was: so that it
    // can still be told whether the copy ends because the stack does.
    let kept = room.min((len / 8 + 1) * 8);
    let data_at = size_at + 8;
    let shorter = data_at + kept + 8;
    read(position, &mut out[..data_at + kept]);
    out[6..8].copy_from_slice(&(shorter as u16).to_le_bytes());
    out[size_at..data_at].copy_from_slice(&(kept as u64).to_le_bytes());
    out[data_at + kept..shorter].copy_from_slice(&(len as u64).to_le_bytes());
    shorter
}

/// The stack copy in a sample.
struct Stack {
    /// The place of the size of its room.
    size_at: usize,
    /// The bytes that are there.
    len: usize,
    /// The room for them.
    room: usize,
}

/// Finds a sample's stack copy; `None` where there is none, or the record is not laid out as expected.
fn stack(
    read: &impl Fn(u64, &mut [u8]),
    position: u64,
    whole: usize,
    layout: &SampleLayout,
) -> Option<Stack> {
    let word = |at: usize| -> Option<usize> {
        let mut bytes = [0; 8];
        if at.checked_add(8)? > whole {
            return None;
        }
        read(position + at as u64, &mut bytes);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let chain_at = if layout.group {
        let counters = word(layout.counters_at)?.checked_mul(layout.counter_bytes)?;
        layout.counters_at.checked_add(8)?.checked_add(counters)?
    } else {
        layout.counters_at + layout.counter_bytes
    };
    let chain = word(chain_at)?.checked_mul(8)?;
    let registers_at = chain_at.checked_add(8)?.checked_add(chain)?;
    let registers = if word(registers_at)? == 0 { 0 } else { layout.register_bytes };
    let size_at = registers_at.checked_add(8 + registers)?;
    let room = word(size_at)?;
    let fits = room != 0 && size_at.checked_add(16)?.checked_add(room)? == whole;
    let len = if fits { word(whole - 8)? } else { return None };
    (len <= room).then_some(Stack { size_at, len, room })
}
