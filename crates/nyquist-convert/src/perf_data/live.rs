//! Outer parts of stacks that were read from living processes, as records of a perf.data file.
//!
//! The kernel has no record for them. They are written as `TEXT_POKE` with the CPU mode of user code. This
//! record states which bytes are at an address. The kernel writes it only for its own code, and perf ignores
//! others. Its new bytes are pages that have changed since the thread's stack was read before. Its old bytes
//! are four or five numbers of 64 bits, the lowest byte first: the time of the reading, its first address, its number
//! of bytes, and how many records of the same reading follow; if it was read at the moment of a sample, also that
//! sample's stack pointer. The thread and the event's time are in the
//! record's trailer.

use std::sync::Arc;

use bytes::Bytes;
use nyquist_object::Avma;
use nyquist_perf::abi::misc;
use nyquist_perf::{RecordFormat, RecordId, TextPoke};
use rustc_hash::FxHashMap;

use crate::event::{Event, EventKind, LiveStack, Pid, Tid, Timestamp};

/// The most pages in a record, which is shorter than 64 kB.
const PAGES_A_RECORD: usize = 14;
/// The most bytes of a valid reading.
const MAX_BYTES: u64 = 64 << 20;

/// The last reading of each thread.
#[derive(Debug, Default)]
pub(crate) struct LiveStackRecords {
    last: FxHashMap<Tid, Arc<LiveStack>>,
    /// Of each thread, the pages of a reading that is not complete.
    pending: FxHashMap<Tid, Vec<(u64, Bytes)>>,
}

impl LiveStackRecords {
    /// The records of a reading.
    pub(crate) fn encode(
        &mut self,
        live: &Arc<LiveStack>,
        time: Timestamp,
        format: &RecordFormat,
    ) -> Vec<u8> {
        let last = self.last.insert(live.tid, Arc::clone(live)).filter(|last| last.pid == live.pid);
        let is_new = |(address, page): &(Avma, &Bytes)| {
            last.as_ref().and_then(|last| last.page_at(*address)) != Some(*page)
        };
        let runs: Vec<_> = runs_of(live, is_new)
            .iter()
            .flat_map(|run| run.chunks(PAGES_A_RECORD))
            .map(|run| (run[0].0, run.iter().flat_map(|(_, page)| page.iter().copied()).collect::<Vec<u8>>()))
            .collect();
        // A reading without changes also has a record.
        let runs = if runs.is_empty() { vec![(live.start, Vec::new())] } else { runs };
        let id = RecordId { task: Some((live.pid.0, live.tid.0)), time: Some(time.0), ..RecordId::default() };
        let bytes = (live.pages.len() * LiveStack::PAGE) as u64;
        let record = |(index, (address, new)): (usize, &(Avma, Vec<u8>))| {
            let left = (runs.len() - 1 - index) as u64;
            let about = [live.read_at.0, live.start.0, bytes, left];
            let about = about.into_iter().chain(live.stack_pointer.map(|pointer| pointer.0));
            let about: Vec<u8> = about.flat_map(u64::to_le_bytes).collect();
            format.encode_text_poke(misc::USER, &TextPoke { address: address.0, old: &about, new }, &id)
        };
        runs.iter().enumerate().flat_map(record).collect()
    }

    /// Decodes a record, and returns the reading that it completes.
    pub(crate) fn decode(&mut self, poke: &TextPoke<'_>, id: &RecordId) -> Option<Event> {
        let (pid, tid) = id.task.map(|(pid, tid)| (Pid(pid), Tid(tid)))?;
        let (numbers, []) = poke.old.as_chunks::<8>() else { return None };
        let (numbers, stack_pointer) = match numbers {
            [numbers @ .., stack_pointer] if numbers.len() == 4 => {
                (numbers, Some(Avma(u64::from_le_bytes(*stack_pointer))))
            }
            numbers => (numbers, None),
        };
        let [read_at, start, bytes, left] = <[[u8; 8]; 4]>::try_from(numbers).ok()?.map(u64::from_le_bytes);
        let pending = self.pending.entry(tid).or_default();
        if pending.len() > MAX_BYTES as usize / LiveStack::PAGE {
            pending.clear();
        }
        let pages = poke.new.as_chunks::<{ LiveStack::PAGE }>().0.iter();
        let addresses = (0..).map(|index: u64| poke.address.wrapping_add(index * LiveStack::PAGE as u64));
        // The pages are copied, because a slice would keep a whole piece of the file in memory.
        pending.extend(addresses.zip(pages.map(|page| Bytes::copy_from_slice(&page[..]))));
        if left > 0 {
            return None;
        }
        let new = std::mem::take(pending);
        let last = self.last.get(&tid).map(|last| &**last).filter(|last| last.pid == pid);
        let pages = pages_of((start, bytes), &new, last)?;
        let (read_at, start) = (Timestamp(read_at), Avma(start));
        let live = LiveStack { pid, tid, read_at, start, pages, stack_pointer };
        let live = Arc::new(live);
        self.last.insert(tid, Arc::clone(&live));
        Some(Event { time: Timestamp(id.time?), cpu: None, kind: EventKind::LiveStack(live) })
    }
}

/// The contiguous runs of pages of a reading that meet a condition.
fn runs_of(live: &LiveStack, is_so: impl Fn(&(Avma, &Bytes)) -> bool) -> Vec<Vec<(Avma, &Bytes)>> {
    let addresses = (0..).map(|index: u64| Avma(live.start.0 + index * LiveStack::PAGE as u64));
    let pages: Vec<_> = addresses.zip(&live.pages).filter(is_so).collect();
    let runs = pages.chunk_by(|(one, _), (next, _)| next.0 - one.0 == LiveStack::PAGE as u64);
    runs.map(<[_]>::to_vec).collect()
}

/// All pages of a reading: the new pages, and the former contents of the others.
fn pages_of(
    (start, bytes): (u64, u64),
    new: &[(u64, Bytes)],
    last: Option<&LiveStack>,
) -> Option<Vec<Bytes>> {
    let new: FxHashMap<u64, &Bytes> = new.iter().map(|(address, page)| (*address, page)).collect();
    let page = |index: u64| {
        let address = start.checked_add(index * LiveStack::PAGE as u64)?;
        let known = || last.and_then(|last| last.page_at(Avma(address)));
        new.get(&address).copied().or_else(known).cloned()
    };
    (0..bytes.min(MAX_BYTES) / LiveStack::PAGE as u64).map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_perf::{Header, RecordBody, SampleType, parse_record};

    fn format() -> RecordFormat {
        let sample_type = SampleType::TID.with(SampleType::TIME).with(SampleType::IDENTIFIER);
        RecordFormat { sample_type, sample_id_all: true, ..RecordFormat::default() }
    }

    fn live(read_at: u64, start: u64, pages: &[u8]) -> Arc<LiveStack> {
        let page = |byte: &u8| Bytes::from(vec![*byte; LiveStack::PAGE]);
        let pages = pages.iter().map(page).collect();
        let (pid, tid, read_at) = (Pid(7), Tid(9), Timestamp(read_at));
        Arc::new(LiveStack { pid, tid, read_at, start: Avma(start), pages, stack_pointer: None })
    }

    /// Writes and reads each in turn, and returns how many records each took.
    fn through(readings: &[Arc<LiveStack>]) -> Vec<usize> {
        let (mut writer, mut reader) = (LiveStackRecords::default(), LiveStackRecords::default());
        let mut counts = Vec::new();
        for live in readings {
            let bytes = Bytes::from(writer.encode(live, Timestamp(live.read_at.0 - 5), &format()));
            let (mut at, mut count, mut events) = (0, 0, Vec::new());
            while at < bytes.len() {
                let record = parse_record(&bytes[at..], &format()).unwrap();
                let RecordBody::TextPoke(poke) = &record.body else { panic!("{record:?}") };
                events.extend(reader.decode(poke, &record.id));
                at += usize::from(Header::parse(&bytes[at..]).unwrap().size);
                count += 1;
            }
            let kind = EventKind::LiveStack(Arc::clone(live));
            assert_eq!(events, [Event { time: Timestamp(live.read_at.0 - 5), cpu: None, kind }]);
            counts.push(count);
        }
        counts
    }

    #[test]
    fn only_what_has_changed_is_written_and_read() {
        let many: Vec<u8> = (0..40).collect();
        let readings = [
            live(100, 0x10000, &[1, 2, 3, 4]),
            live(200, 0x10000, &[1, 2, 3, 4]),
            live(300, 0xf000, &[0, 1, 9, 3, 5]),
            live(400, 0x11000, &[9, 3]),
            live(500, 0x10000, &many),
            Arc::new(LiveStack { stack_pointer: Some(Avma(0xff8)), ..(*live(600, 0x10000, &many)).clone() }),
        ];
        assert_eq!(through(&readings), [1, 1, 3, 1, 3, 1]);
    }

    #[test]
    fn a_reading_of_which_pages_are_missing_is_none() {
        let mut reader = LiveStackRecords::default();
        let id = RecordId { task: Some((7, 9)), time: Some(1), ..RecordId::default() };
        let mut check = |about: &[u64], new: &[u8], is_one: bool| {
            let old: Vec<u8> = about.iter().flat_map(|word| word.to_le_bytes()).collect();
            let poke = TextPoke { address: 0x1000, old: &old, new };
            assert_eq!(reader.decode(&poke, &id).is_some(), is_one, "{about:x?}");
        };
        let page = [1; LiveStack::PAGE];
        check(&[5, 0x1000, 0x1000, 0], &[], false);
        check(&[5, 0x1000, 0x2000, 0], &page, false);
        check(&[5, 0x1000, u64::MAX, 0], &page, false);
        check(&[5, u64::MAX, 0x2000, 0], &page, false);
        check(&[5, 0x1000], &page, false);
        check(&[5, 0x1000, 0x1000, 0, 0x1000, 0x1000], &page, false);
        check(&[5, 0x1000, 0x3000, 0], &page, false);
        check(&[5, 0x1000, 0x1000, 0], &page, true);
        check(&[5, 0x1000, 0x1000, 0, 0x1000], &page, true);
    }
}
