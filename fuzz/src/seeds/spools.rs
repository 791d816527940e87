//! First inputs of the target of spools.

use super::corpus;
use nyquist_fuzz::sample_profile::{VERSIONS, sample_document};
use nyquist_profile::firefox;
use nyquist_spool::{Batch, Header, SegmentWriter, State, TableMarks};
use std::io;

/// Segments of the tests' profile: as it is, and as records with their lengths.
pub(super) fn write() -> io::Result<()> {
    let document = sample_document(VERSIONS[1], false);
    let profile = firefox::read(document.as_slice()).expect("the tests' profile can be read");
    let mut batch = Batch::default();
    TableMarks::default().add_new((&profile, &profile, true), |_| false, &mut batch);
    State::default().add_to(&mut batch);
    let mut segment = vec![0];
    SegmentWriter::begin(&mut segment, Header::default())?.append(batch.records())?;
    let mut records = vec![1];
    for record in batch.records() {
        records.extend((record.len() as u16).to_le_bytes());
        records.extend(record);
    }
    corpus::write("spool", 0, &segment)?;
    corpus::write("spool", 1, &records)
}
