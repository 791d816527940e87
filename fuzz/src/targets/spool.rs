//! Spools: arbitrary segments, and arbitrary records in segments whose checksums are right.

use nyquist_convert::{name_by_address, recover};
use nyquist_profile::firefox::{self, WriteOptions};
use nyquist_spool::{Header, RecoveredTables, SegmentWriter, read_recording};
use std::io::{self, Cursor};

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let segment = if choice % 2 == 0 { rest.to_vec() } else { sealed(rest) };
    let Ok(read) = read_recording(vec![Cursor::new(segment)], RecoveredTables::default) else { return };
    let Some(recovered) = read.tables.finish() else { return };
    let profile = name_by_address(recover(recovered, choice & 2 == 0).profile);
    firefox::write(&profile, WriteOptions::default(), io::sink()).expect("nothing can fail");
}

/// A segment of records. Each has its length before it.
fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    let mut writer = SegmentWriter::begin(&mut segment, Header::default()).expect("memory can be written");
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let (record, after) = after.split_at(after.len().min(u16::from_le_bytes(*len).into()));
        writer.append([record]).expect("memory can be written");
        rest = after;
    }
    segment
}
