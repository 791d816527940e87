//! Arbitrary bytes as a marker file's header and records, and as samply's text; the events make a profile by every rule
//! of the format.

use nyquist_convert::event::{Pid, Tid, Timestamp};
use nyquist_convert::marker_file::{Decoder, FileHeader, OpenIntervals, Period};
use nyquist_convert::{Converter, Options, marker_text};
use crate::sample_profile::check_rewritten;
use nyquist_profile::Meta;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = FileHeader::parse(bytes);
    let period = Period { since: Timestamp(1000), until: Timestamp(u64::from(u32::MAX)), ahead_ns: 0 };
    let (mut open, mut events) = (OpenIntervals::default(), Vec::new());
    // Two files, for intervals that begin in one and end in the other; the second in two pieces.
    let (first, second) = bytes.split_at(bytes.len() / 16 * 8);
    for (pid, file) in [(7, first), (7, second), (8, bytes)] {
        let mut decoder = Decoder::new(Pid(pid));
        for piece in file.chunks(4096) {
            decoder.decode(piece, &Tid, period, &mut open, &mut events);
        }
    }
    marker_text::decode(bytes, (Pid(7), Tid(7)), period, &mut events);
    open.finish(&mut events);
    let meta = Meta { interval: 1_000_000, ..Meta::default() };
    let mut converter = Converter::new(Options::new(period.since, meta));
    events.into_iter().for_each(|event| converter.push(event));
    check_rewritten(&converter.finish().profile);
}
