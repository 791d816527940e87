//! The header of a perf.data file and its sections.
//!
//! Source: Linux's `tools/perf/Documentation/perf.data-file-format.txt` and `struct perf_file_header` in
//! `tools/perf/util/header.h`.

use crate::ByteOrder;
use crate::cursor::RecordCursor;

/// The header of a file, or of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The byte order of all numbers.
    pub byte_order: ByteOrder,
    /// The sections; a stream (`perf record -o -`) has none, and contains their data in records.
    pub sections: Option<PerfSections>,
}

/// The sections of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfSections {
    /// The size in bytes of an entry of the attributes' section: the attributes and the position of their
    /// ids.
    pub attr_len: u64,
    /// The attributes of the events.
    pub attrs: PerfSection,
    /// The records.
    pub data: PerfSection,
    /// The features after the records, a bit each.
    pub features: [u64; 4],
}

/// A range of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfSection {
    /// The start, in bytes from the start of the file.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl PerfSection {
    /// The end.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

impl FileHeader {
    /// The bytes of a stream's header.
    pub const STREAM_LEN: usize = 16;
    /// The bytes of a file's header.
    pub const FILE_LEN: usize = 104;

    /// Whether bytes begin like a recording.
    pub fn is_magic(bytes: &[u8]) -> bool {
        order_of(bytes).is_some()
    }

    /// Parses the header at the start of `bytes`; `None` if there is none, or it is incomplete.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let byte_order = order_of(bytes)?;
        let mut cursor = RecordCursor::new(bytes.get(8..)?, byte_order);
        let len = cursor.u64("header").ok()?;
        if len == Self::STREAM_LEN as u64 {
            return Some(Self { byte_order, sections: None });
        }
        let mut word = || cursor.u64("header").ok();
        let attr_len = word()?;
        let attrs = PerfSection { offset: word()?, size: word()? };
        let data = PerfSection { offset: word()?, size: word()? };
        let _event_types = PerfSection { offset: word()?, size: word()? };
        let features = [word()?, word()?, word()?, word()?];
        Some(Self { byte_order, sections: Some(PerfSections { attr_len, attrs, data, features }) })
    }
}

/// The magic number reads `PERFILE2` if a little-endian machine wrote it. The first version of the format
/// had another one.
fn order_of(bytes: &[u8]) -> Option<ByteOrder> {
    match bytes.get(..8)? {
        b"PERFILE2" | b"PERFFILE" => Some(ByteOrder::Little),
        b"2ELIFREP" | b"ELIFFREP" => Some(ByteOrder::Big),
        _ => None,
    }
}

impl PerfSections {
    /// The numbers of the features after the records, ascending.
    pub fn feature_numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let features = self.features;
        (0..256_u32).filter(move |bit| features[(bit / 64) as usize] >> (bit % 64) & 1 != 0)
    }
}
