//! Records of types and ids by their numbers (LLVM, "The PDB TPI and IPI Streams").

use super::msf::Msf;
use nyquist_object::Cursor;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The number of the first record; numbers below are of built-in types.
pub(super) const FIRST_RECORD: u32 = 0x1000;

/// The interval of records with known places, if the PDB itself does not state places.
const RECORDS_BETWEEN: u32 = 64;

/// A stream of types or of ids.
pub(super) struct TypeRecords {
    stream: usize,
    header_len: u32,
    first: u32,
    end: u32,
    /// The size of the records in bytes.
    len: u32,
    hash_stream: usize,
    /// The offset and size in the hash stream of the places of some records.
    places: (u32, u32),
    anchors: OnceLock<Vec<[u32; 2]>>,
    /// The parts of the stream that were read, by the number of the record with which they begin.
    parts: Mutex<FxHashMap<u32, Arc<[u8]>>>,
}

/// A record: its kind and its contents.
pub(super) struct TypeRecord {
    pub(super) kind: u16,
    part: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl TypeRecord {
    pub(super) fn bytes(&self) -> &[u8] {
        self.part.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads numbers from `at` on.
    pub(super) fn cursor(&self, at: usize) -> Cursor<'_> {
        Cursor::new(self.bytes(), at, true)
    }
}

impl TypeRecords {
    /// Reads the header of a stream. Without it, no record is found.
    pub(super) fn new(msf: &Msf, stream: usize) -> Self {
        let header = msf.read_range(stream, 0, 56).unwrap_or_default();
        let word = |at| Cursor::new(&header, at, true).u32().unwrap_or(0);
        let hash_stream = Cursor::new(&header, 20, true).u16().unwrap_or(u16::MAX);
        Self {
            stream,
            header_len: word(4),
            first: word(8),
            end: word(12),
            len: word(16).min(msf.len(stream).saturating_sub(word(4))),
            hash_stream: hash_stream.into(),
            places: (word(40), word(44)),
            anchors: OnceLock::new(),
            parts: Mutex::default(),
        }
    }

    /// The record with this number.
    pub(super) fn find(&self, msf: &Msf, number: u32) -> Option<TypeRecord> {
        if !(self.first..self.end).contains(&number) {
            return None;
        }
        let anchors =
            self.anchors.get_or_init(|| self.provided_places(msf).unwrap_or_else(|| self.own_places(msf)));
        let after = anchors.partition_point(|[first, _]| *first <= number);
        let [first, start] = *anchors.get(after.checked_sub(1)?)?;
        let end = anchors.get(after).map_or(self.len, |[_, next]| *next);
        let part = self.part(msf, first, start, end)?;
        let mut at = 0_usize;
        for _ in first..number {
            at += 2 + usize::from(Cursor::new(&part, at, true).u16()?);
        }
        let mut cursor = Cursor::new(&part, at, true);
        let len = usize::from(cursor.u16()?).checked_sub(2)?;
        let kind = cursor.u16()?;
        let start = cursor.position();
        (start + len <= part.len()).then_some(TypeRecord { kind, part, start, end: start + len })
    }

    fn part(&self, msf: &Msf, first: u32, start: u32, end: u32) -> Option<Arc<[u8]>> {
        let lock = || self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&first) {
            return Some(known.clone());
        }
        let bytes =
            msf.read_range(self.stream, self.header_len.checked_add(start)?, end.checked_sub(start)?).ok()?;
        Some(lock().entry(first).or_insert(bytes.into()).clone())
    }

    /// The places that the PDB states: that of one record for about every eight kilobytes.
    fn provided_places(&self, msf: &Msf) -> Option<Vec<[u32; 2]>> {
        let (offset, len) = self.places;
        let bytes = msf.read_range(self.hash_stream, offset, len).ok()?;
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let places = words.as_chunks().0.to_vec();
        let is_ordered = places.is_sorted_by(|[a, b], [c, d]| a < c && b < d);
        let begins = places.first() == Some(&[self.first, 0]);
        (begins && is_ordered && places.last().is_some_and(|[_, at]| *at <= self.len)).then_some(places)
    }

    /// Places that are found by reading all records once.
    fn own_places(&self, msf: &Msf) -> Vec<[u32; 2]> {
        let bytes = msf.read_range(self.stream, self.header_len, self.len).unwrap_or_default();
        let mut places = Vec::new();
        let mut at = 0_usize;
        for number in self.first..self.end {
            let Some(len) = Cursor::new(&bytes, at, true).u16() else { break };
            if (number - self.first).is_multiple_of(RECORDS_BETWEEN) {
                places.push([number, at as u32]);
            }
            at += 2 + usize::from(len);
        }
        places
    }
}
