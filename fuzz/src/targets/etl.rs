//! A whole trace of Windows of arbitrary bytes: read, converted, and what comes out must be a profile by every rule of
//! the format. A small trace must not become a large profile.

use std::collections::HashSet;
use std::io::Cursor;

use crate::sample_profile::check_rewritten;
use nyquist_convert::etw::{EtwOptions, import};
use nyquist_etw::file::FileReader;
use nyquist_profile::Profile;

/// The most stacks, which are nodes of a tree, for each byte of the events. The shortest events that have a stack are
/// some 32 bytes long, and a stack has at most 512 addresses.
const MAX_STACKS_PER_BYTE: usize = 16;
/// What a trace without events can have.
const MAX_STACKS_WITHOUT_EVENTS: usize = 1000;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    if let Ok(reader) = FileReader::open(Cursor::new(bytes))
        && let Ok(imported) = import(reader, EtwOptions::default())
    {
        let profile = &imported.finished.profile;
        let most = bytes_of_events(bytes).saturating_mul(MAX_STACKS_PER_BYTE).saturating_add(MAX_STACKS_WITHOUT_EVENTS);
        let stacks = stacks(profile);
        assert!(stacks <= most, "{stacks} stacks, and not {most}");
        check_rewritten(profile);
    }
}

/// The number of all stacks of samples.
fn stacks(profile: &Profile) -> usize {
    let mut seen = HashSet::new();
    for thread in profile.threads() {
        for stack in thread.samples.iter().filter_map(|sample| sample.stack) {
            profile.ancestors(stack).take_while(|stack| seen.insert(*stack)).for_each(drop);
        }
    }
    seen.len()
}

/// The length of all events, which are unpacked: a small file can have long ones.
fn bytes_of_events(bytes: &[u8]) -> usize {
    /// The shortest header.
    const HEADER: usize = 16;
    let Ok(mut reader) = FileReader::open(Cursor::new(bytes)) else { return 0 };
    let mut len = 0_usize;
    while let Ok(Some(event)) = reader.next_event() {
        len = len.saturating_add(HEADER + event.payload.len());
    }
    len
}
