//! Lost records that no record of losses reports.
//!
//! A full ring has no room for a record of its losses either. The kernel writes that record before the next
//! one that fits, and after the last losses of a CPU there may be none. But each event counts its lost
//! records.

use std::collections::BTreeMap;

use nyquist_convert::event::{Event, EventKind, Timestamp};
use nyquist_perf::{RecordBody, RecordFormat, parse_record};

/// The losses on each CPU, as reported in records.
#[derive(Debug)]
pub(crate) struct UnreportedLosses {
    format: RecordFormat,
    reported: BTreeMap<u32, u64>,
    /// The losses of additional events: those in records, and those dropped because there was no
    /// memory.
    additional_reported: u64,
    additional_dropped: u64,
}

impl UnreportedLosses {
    /// Nothing was lost so far.
    pub(crate) fn new(format: RecordFormat) -> Self {
        Self { format, reported: BTreeMap::new(), additional_reported: 0, additional_dropped: 0 }
    }

    /// Notes a record of losses.
    pub(crate) fn note(&mut self, lost: &[u8]) {
        let Ok(record) = parse_record(lost, &self.format) else { return };
        if let (RecordBody::Lost(lost), Some(cpu)) = (record.body, record.id.cpu) {
            let reported = self.reported.entry(cpu).or_default();
            *reported = reported.saturating_add(lost.records);
        }
    }

    /// Notes a record of losses of additional events.
    pub(crate) fn note_additional(&mut self, lost: &[u8]) {
        let Ok(record) = parse_record(lost, &self.format) else { return };
        if let RecordBody::Lost(lost) = record.body {
            self.additional_reported = self.additional_reported.saturating_add(lost.records);
        }
    }

    /// Counts a dropped record of an additional event.
    pub(crate) fn drop_additional(&mut self) {
        self.additional_dropped = self.additional_dropped.saturating_add(1);
    }

    /// The number of dropped records of additional events that no record reports, given the kernel's
    /// total.
    pub(crate) fn unreported_additional(&self, counted: u64, now: Timestamp) -> Option<Event> {
        let records =
            counted.saturating_sub(self.additional_reported).saturating_add(self.additional_dropped);
        let kind = EventKind::OccurrencesLost { records };
        (records > 0).then_some(Event { time: now, cpu: None, kind })
    }

    /// The losses that no record has reported up to now, given the total of lost samples on each CPU.
    pub(crate) fn unreported(
        &self,
        counted: BTreeMap<u32, u64>,
        now: Timestamp,
    ) -> impl Iterator<Item = Event> {
        let reported = |cpu: u32| self.reported.get(&cpu).copied().unwrap_or_default();
        let unreported =
            counted.into_iter().map(move |(cpu, counted)| (cpu, counted.saturating_sub(reported(cpu))));
        let event =
            move |(cpu, records)| Event { time: now, cpu: Some(cpu), kind: EventKind::Lost { records } };
        unreported.filter(|(_, records)| *records > 0).map(event)
    }
}

#[cfg(test)]
mod tests {
    use nyquist_perf::SampleType;
    use nyquist_perf::abi::record;

    use super::*;

    #[test]
    fn losses_of_additional_events_are_counted_once() {
        let mut losses = UnreportedLosses::new(RecordFormat::default());
        let lost = |records: u64| {
            let header = [&record::LOST.to_le_bytes()[..], &[0, 0], &24_u16.to_le_bytes()].concat();
            header
                .into_iter()
                .chain([100, records].into_iter().flat_map(u64::to_le_bytes))
                .collect::<Vec<u8>>()
        };
        assert_eq!(losses.unreported_additional(0, Timestamp(9)), None);
        losses.note_additional(&lost(7));
        losses.drop_additional();
        losses.note_additional(&lost(2));
        losses.drop_additional();
        let lost = losses.unreported_additional(12, Timestamp(9)).unwrap();
        // Records reported nine of twelve, and the reader dropped two.
        assert_eq!(lost.kind, EventKind::OccurrencesLost { records: 5 });
        assert_eq!(losses.unreported(BTreeMap::new(), Timestamp(9)).count(), 0);
    }

    #[test]
    fn what_no_record_has_reported_is_counted() {
        let sample_type = SampleType::CPU;
        let mut losses = UnreportedLosses::new(RecordFormat {
            sample_type,
            sample_id_all: true,
            ..RecordFormat::default()
        });
        for (cpu, records) in [(3_u64, 7_u64), (4, 1), (3, 2)] {
            let size = 32_u16;
            let mut bytes = record::LOST.to_le_bytes().to_vec();
            bytes.extend([0, 0].into_iter().chain(size.to_le_bytes()));
            bytes.extend([100, records, cpu].into_iter().flat_map(u64::to_le_bytes));
            losses.note(&bytes);
        }
        let counted = [(3, 10), (4, 1), (5, 2), (6, 0)].into_iter().collect();
        let unreported: Vec<_> = losses
            .unreported(counted, Timestamp(9))
            .map(|event| (event.time.0, event.cpu, event.kind))
            .collect();
        let lost = |records| EventKind::Lost { records };
        assert_eq!(unreported, [(9, Some(3), lost(1)), (9, Some(5), lost(2))]);
    }
}
