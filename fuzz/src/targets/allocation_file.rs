//! Arbitrary bytes as the header and the records of a file of allocations; the events make a profile by every rule of
//! the format.

use crate::sample_profile::check_rewritten;
use nyquist_convert::allocation_file::{AllocationDecoder, AllocationHeader};
use nyquist_convert::event::{Event, EventKind, HeapContents, HeapId, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::Period;
use nyquist_convert::{Converter, Options};
use nyquist_profile::Meta;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = AllocationHeader::parse(bytes);
    let period = Period { since: Timestamp(1000), until: Timestamp(u64::from(u32::MAX)), ahead_ns: 0 };
    let mut events = Vec::new();
    let heap = HeapId(1);
    for distance in [1, 512 << 10] {
        let mut decoder = AllocationDecoder::new(Pid(7), heap, distance);
        decoder.decode(&bytes.to_vec().into(), &Tid, period, &mut events);
    }
    let contents = HeapContents { heap, addresses: vec![0x1000] };
    events.push(Event { time: period.until, cpu: None, kind: EventKind::HeapContents(Box::new(contents)) });
    let meta = Meta { interval: 1_000_000, ..Meta::default() };
    let mut converter = Converter::new(Options::new(period.since, meta));
    events.into_iter().for_each(|event| converter.push(event));
    let profile = converter.finish().profile;
    for event in profile.recorded_events().into_iter().map(str::to_owned).collect::<Vec<_>>() {
        if let Some(measured) = profile.without_samples().with_event_as_samples(&event) {
            check_rewritten(&measured);
        }
    }
    check_rewritten(&profile);
}
