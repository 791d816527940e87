//! Writes records into blocks of a fixed size, so that reading resumes at the next block after damage.

use crate::header::Header;
use std::io::{self, Write};

/// The size of a block in bytes.
pub(crate) const BLOCK: usize = 32 << 10;

/// The size of a fragment's header: checksum, length and part.
pub(crate) const FRAGMENT_HEADER: usize = 7;

/// The largest record that is read, in bytes.
pub(crate) const MAX_RECORD: usize = 4 << 20;

/// Which part of its record a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl Part {
    pub(crate) fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Whole,
            2 => Self::First,
            3 => Self::Middle,
            4 => Self::Last,
            _ => return None,
        })
    }

    fn new(is_first: bool, is_last: bool) -> Self {
        match (is_first, is_last) {
            (true, true) => Self::Whole,
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
        }
    }
}

/// The checksum of a fragment. It covers the length and the part, too.
pub(crate) fn checksum(header: [u8; 3], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header), payload)
}

/// Appends records to a segment.
#[derive(Debug)]
pub struct SegmentWriter<W> {
    out: W,
    /// The bytes that were written.
    size: u64,
    /// The encoded records of a batch. Kept to reuse its memory.
    buffer: Vec<u8>,
}

impl<W: Write> SegmentWriter<W> {
    /// Begins a segment: writes its header.
    pub fn begin(mut out: W, header: Header) -> io::Result<Self> {
        out.write_all(&header.to_bytes())?;
        Ok(Self { out, size: Header::SIZE as u64, buffer: Vec::new() })
    }

    /// Appends records, in one call of the system. After an error, nothing may be appended any more, because it is not
    /// known how much was written.
    pub fn append<'a>(&mut self, records: impl IntoIterator<Item = &'a [u8]>) -> io::Result<()> {
        self.buffer.clear();
        for record in records {
            self.encode(record);
        }
        self.out.write_all(&self.buffer)?;
        self.size += self.buffer.len() as u64;
        Ok(())
    }

    /// The size of the segment in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What it is written to.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    fn encode(&mut self, record: &[u8]) {
        let mut rest = record;
        let mut is_first = true;
        loop {
            let used = (self.size as usize + self.buffer.len()) % BLOCK;
            let mut room = BLOCK - used;
            if room <= FRAGMENT_HEADER {
                self.buffer.resize(self.buffer.len() + room, 0);
                room = BLOCK;
            }
            let (payload, after) = rest.split_at(rest.len().min(room - FRAGMENT_HEADER));
            self.put_fragment(payload, Part::new(is_first, after.is_empty()));
            if after.is_empty() {
                return;
            }
            (rest, is_first) = (after, false);
        }
    }

    fn put_fragment(&mut self, payload: &[u8], part: Part) {
        let len = (payload.len() as u16).to_le_bytes();
        let header = [len[0], len[1], part as u8];
        self.buffer.extend_from_slice(&checksum(header, payload).to_le_bytes());
        self.buffer.extend_from_slice(&header);
        self.buffer.extend_from_slice(payload);
    }
}
