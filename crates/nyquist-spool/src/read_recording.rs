//! Reads the segments of a recording, of which some may be damaged or missing.

use crate::header::{BootId, Header, HeaderError};
use crate::read_blocks::read_segment;
use crate::recovered::RecoveredTables;
use std::io::{self, Read, Seek};
use thiserror::Error;

/// How many rows may be missing because of a segment that is, instead of the bytes of a damaged one.
const ROWS_OF_SEGMENT: u64 = 1 << 20;

/// Why nothing of a recording can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file cannot be read.
    #[error("cannot read it")]
    Io(#[from] io::Error),
    /// No file is a segment.
    #[error("{0}")]
    Header(HeaderError),
    /// No batch was written in full.
    #[error("the recording ends before its first second")]
    Nothing,
}

/// A recording that was read.
#[derive(Debug)]
pub struct ReadRecording {
    /// Its tables.
    pub tables: RecoveredTables,
    /// The boot during which it was written.
    pub boot: BootId,
    /// The bytes that could not be read.
    pub skipped: u64,
}

/// Reads the segments of a recording, in any order. If its tables were made anew, only the last ones are read, or those
/// before if the last ones have no batch. `tables` are those that the records go into.
///
/// # Errors
/// If nothing can be read.
pub fn read_recording<File: Read + Seek>(
    files: Vec<File>,
    tables: fn() -> RecoveredTables,
) -> Result<ReadRecording, RecordingError> {
    let mut segments = Vec::new();
    let mut refused = HeaderError::Empty;
    for mut file in files {
        match read_header(&mut file)? {
            Ok(header) => segments.push((header, file)),
            Err(error) => refused = error,
        }
    }
    segments.sort_by_key(|(header, _)| (header.epoch, header.number));
    while let Some(epoch) = segments.last().map(|(header, _)| header.epoch) {
        let first = segments.partition_point(|(header, _)| header.epoch < epoch);
        let read = read_epoch(segments.split_off(first), tables())?;
        if read.tables.state().is_some() {
            return Ok(read);
        }
        refused = HeaderError::Empty;
    }
    Err(if refused == HeaderError::Empty { RecordingError::Nothing } else { RecordingError::Header(refused) })
}

fn read_header(file: &mut (impl Read + Seek)) -> io::Result<Result<Header, HeaderError>> {
    let mut bytes = Vec::new();
    file.by_ref().take(Header::SIZE as u64).read_to_end(&mut bytes)?;
    file.rewind()?;
    Ok(Header::read(&bytes))
}

/// Reads segments that belong together, in the order of their numbers.
fn read_epoch(segments: Vec<(Header, impl Read)>, tables: RecoveredTables) -> io::Result<ReadRecording> {
    let mut read = ReadRecording { tables, boot: BootId::default(), skipped: 0 };
    let mut next = segments.first().map_or(0, |(header, _)| header.number);
    for (header, file) in segments {
        let missing = u64::from(header.number.saturating_sub(next));
        read.skipped = read.skipped.saturating_add(missing.saturating_mul(ROWS_OF_SEGMENT));
        (next, read.boot) = (header.number.saturating_add(1), header.boot);
        let before = read.skipped;
        let tables = &mut read.tables;
        let segment = read_segment(file, |record, skipped| tables.take(record, before + skipped))?;
        // The header was read before. If it has changed since, there is nothing else here.
        read.skipped = before.saturating_add(segment.map_or(0, |segment| segment.skipped));
    }
    Ok(read)
}
