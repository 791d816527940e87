//! The records of one byte stream: read in large chunks, and split at the ends of records.

use nyquist_system::FileExt as _;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::error::{Damage, DamageKind};
use super::simpleperf;
use super::zstd::Inflater;
use crate::{ByteOrder, Header};

/// The number of bytes read in one call. With large chunks, threads that take turns at reading wait less
/// often. But a waiting sample keeps its whole chunk in memory.
pub const PIECE_BYTES: usize = 1 << 20;

/// The number of chunks that are kept for reuse. They suffice for two rounds of a recording with copied
/// stacks, which wait to be ordered, and for the data read meanwhile.
const KEPT_PIECES: usize = 32;

/// A stream of records. It is read once, from front to end.
pub(crate) struct RecordStream {
    source: StreamSource,
    /// The number of remaining bytes of records, if it is known. Bytes after them are not records.
    left: Option<u64>,
    /// The offset in the file of the next byte to read.
    offset: u64,
    file: Option<String>,
    order: ByteOrder,
    raw: StreamChunk,
    inflated: Option<InflatedData>,
    damage: Option<Damage>,
    ended: bool,
}

/// The source of bytes.
pub(crate) enum StreamSource {
    /// An open file, from some offset on. Several sources can read one file independently.
    File {
        /// The file.
        file: Arc<File>,
        /// The offset of the next byte.
        at: u64,
    },
    /// Anything else.
    Stream(Box<dyn Read + Send>),
}

impl Read for StreamSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File { file, at } => {
                let read = file.read_at(buffer, *at)?;
                *at += read as u64;
                Ok(read)
            }
            Self::Stream(stream) => stream.read(buffer),
        }
    }
}

impl std::fmt::Debug for RecordStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordStream")
            .field("offset", &self.offset)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Decompressed data.
#[derive(Debug)]
struct InflatedData {
    inflater: Inflater,
    pieces: StreamChunk,
    /// The total number of bytes that the decompressor has output.
    given: u64,
}

/// A chunk of the stream, and the number of its bytes that were consumed.
#[derive(Debug, Default)]
struct StreamChunk {
    piece: Bytes,
    at: usize,
    /// Chunks of which parts were returned. They can be reused when no such part exists any more.
    used: Vec<Bytes>,
}

/// A record of a stream. `bytes` is all of it, and a part of `piece`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRecord<'a> {
    pub(crate) header: Header,
    pub(crate) piece: &'a Bytes,
    pub(crate) bytes: &'a [u8],
    /// The offset of its first byte in the file; `None` if it was decompressed.
    pub(crate) offset: Option<u64>,
}

/// The position of the next record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextRecord {
    header: Header,
    at: usize,
    inflated: bool,
    /// The number of bytes after the nominal end of the record, because simpleperf records can be larger
    /// than perf's records.
    more: u64,
}

impl NextRecord {
    /// The number of following bytes, which must be [taken](RecordStream::take_bytes) or
    /// [skipped](RecordStream::skip).
    pub(crate) fn more(self) -> u64 {
        self.more
    }

    /// Whether it was in compressed records.
    pub(crate) fn is_inflated(self) -> bool {
        self.inflated
    }

    /// Its header.
    pub(crate) fn header(self) -> Header {
        self.header
    }
}

impl RecordStream {
    /// A stream of `left` bytes of records (or all that exist), which begin at `offset` of their file.
    pub(crate) fn new(
        source: StreamSource,
        left: Option<u64>,
        offset: u64,
        file: Option<String>,
        order: ByteOrder,
    ) -> Self {
        Self {
            source,
            left,
            offset,
            file,
            order,
            raw: StreamChunk::default(),
            inflated: None,
            damage: None,
            ended: false,
        }
    }

    /// The damage that ended the stream, if any.
    pub(crate) fn take_damage(&mut self) -> Option<Damage> {
        self.damage.take()
    }

    /// The file that it reads, if it is a file.
    pub(crate) fn file(&self) -> Option<&Arc<File>> {
        match &self.source {
            StreamSource::File { file, .. } => Some(file),
            StreamSource::Stream(_) => None,
        }
    }

    /// The number of decompressed bytes that were returned, and the maximum number that the decompressor
    /// still holds back.
    pub(crate) fn inflated_range(&self) -> Option<(u64, u64)> {
        let inflated = self.inflated.as_ref()?;
        Some((inflated.given, inflated.given + inflated.inflater.held_back()))
    }

    /// Finds the next record. Records from compressed ones come before the records after these. `None` at
    /// the end.
    pub(crate) fn next(&mut self) -> Option<NextRecord> {
        if let Some(next) = self.next_inflated() {
            return Some(next);
        }
        if let Some(next) = self.next_raw() {
            return Some(next);
        }
        self.finish_inflating();
        self.next_inflated()
    }

    /// Whether the next record is already in memory.
    pub(crate) fn has_next(&self) -> bool {
        let holds_record = |pieces: &StreamChunk| {
            let header = Header::parse_in(pieces.rest(), self.order);
            header.is_ok_and(|header| pieces.rest().len() >= usize::from(header.size))
        };
        self.inflated.as_ref().is_some_and(|inflated| holds_record(&inflated.pieces))
            || holds_record(&self.raw)
    }

    /// The record that [`next`](Self::next) found.
    pub(crate) fn record(&self, next: NextRecord) -> StreamRecord<'_> {
        let (pieces, offset) = match &self.inflated {
            Some(inflated) if next.inflated => (&inflated.pieces, None),
            _ => (&self.raw, self.offset.checked_sub((self.raw.piece.len() - next.at) as u64)),
        };
        let end = next.at + usize::from(next.header.size);
        let bytes = pieces.piece.get(next.at..end).unwrap_or_default();
        StreamRecord { header: next.header, piece: &pieces.piece, bytes, offset }
    }

    /// Decompresses the payload of the most recently found record.
    pub(crate) fn inflate(&mut self, next: NextRecord, payload: std::ops::Range<usize>) {
        let inflated = self.inflated.get_or_insert_with(|| InflatedData {
            inflater: Inflater::new(),
            pieces: StreamChunk::default(),
            given: 0,
        });
        let end = next.at + usize::from(next.header.size);
        let record = self.raw.piece.get(next.at..end).unwrap_or_default();
        let compressed = record.get(payload).unwrap_or_default();
        let before = inflated.pieces.rest().len();
        let mut out = inflated.pieces.renew(PIECE_BYTES);
        let result = inflated.inflater.push(compressed, &mut out);
        inflated.given += (out.len() - before) as u64;
        inflated.pieces.put(out);
        if let Err(reason) = result {
            self.stop(DamageKind::Compression(reason), 0);
        }
    }

    /// Skips bytes after a record that are not a record: the data of AUX areas.
    pub(crate) fn skip(&mut self, mut len: u64) {
        while len > 0 && !self.ended {
            let there = self.raw.rest().len().min(usize::try_from(len).unwrap_or(usize::MAX));
            if there == 0 && !self.fill(1) {
                self.stop(DamageKind::Cut, 0);
            }
            self.raw.at += there;
            len -= there as u64;
        }
    }

    /// Returns bytes after a record that are not a record; fewer if the stream ends. Memory is allocated
    /// only for existing bytes.
    pub(crate) fn take_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < len && (!self.raw.rest().is_empty() || self.fill(1)) {
            let rest = self.raw.rest();
            let there = rest.len().min(len - taken.len());
            taken.extend_from_slice(&rest[..there]);
            self.raw.at += there;
        }
        taken
    }

    fn next_inflated(&mut self) -> Option<NextRecord> {
        let order = self.order;
        let pieces = &mut self.inflated.as_mut()?.pieces;
        let header = Header::parse_in(pieces.rest(), order).ok()?;
        let size = usize::from(header.size);
        if size < Header::LEN {
            pieces.at = pieces.piece.len();
            self.stop(DamageKind::RecordSize(header.size), 0);
            return None;
        }
        pieces.take(header, true)
    }

    fn next_raw(&mut self) -> Option<NextRecord> {
        if self.ended || !self.fill(Header::LEN) {
            return None;
        }
        let header = Header::parse_in(self.raw.rest(), self.order).ok()?;
        if simpleperf::is_record(header.kind) {
            let size = u64::from(header.misc) << 16 | u64::from(header.size);
            let header = Header { size: Header::LEN as u16, misc: 0, ..header };
            let next = self.raw.take(header, false)?;
            return Some(NextRecord { more: size.saturating_sub(Header::LEN as u64), ..next });
        }
        if usize::from(header.size) < Header::LEN {
            let zeros = self.raw.rest().iter().all(|byte| *byte == 0);
            let kind = if zeros { DamageKind::Zeros } else { DamageKind::RecordSize(header.size) };
            self.stop(kind, self.raw.rest().len() as u64);
            return None;
        }
        if !self.fill(usize::from(header.size)) {
            return None;
        }
        self.raw.take(header, false)
    }

    /// Ensures that `len` bytes are in memory. Returns false if there are fewer, and records damage if
    /// there are some.
    fn fill(&mut self, len: usize) -> bool {
        if self.raw.rest().len() >= len {
            return true;
        }
        let rest = self.raw.rest().len();
        let mut piece = self.raw.renew_whole(PIECE_BYTES.max(len));
        let requested = self.left.map_or(piece.len() - rest, |left| {
            usize::try_from(left).unwrap_or(usize::MAX).min(piece.len() - rest)
        });
        let (read, error) =
            read_up_to(&mut self.source, &mut piece[rest..rest + requested], len.saturating_sub(rest));
        piece.truncate(rest + read);
        self.offset += read as u64;
        self.left = self.left.map(|left| left - read as u64);
        self.raw.put(piece);
        if self.raw.rest().len() >= len {
            return true;
        }
        let there = self.raw.rest().len() as u64;
        match error {
            Some(error) => self.stop(DamageKind::Unreadable(error.to_string()), there),
            None if there > 0 || self.left.is_some_and(|left| left > 0) => self.stop(DamageKind::Cut, there),
            None => self.ended = true,
        }
        false
    }

    /// Ends the stream at its current position. `there` bytes in memory remain unused.
    fn stop(&mut self, kind: DamageKind, there: u64) {
        self.ended = true;
        let left_out = self.left.map(|left| left + there);
        let left_out = if kind == DamageKind::Cut { left_out.or(Some(there)) } else { left_out };
        self.damage.get_or_insert(Damage {
            offset: self.offset - there,
            file: self.file.clone(),
            kind,
            left_out,
        });
    }

    fn finish_inflating(&mut self) {
        let Some(inflated) = &mut self.inflated else { return };
        let before = inflated.pieces.rest().len();
        let mut out = inflated.pieces.renew(PIECE_BYTES);
        let result = inflated.inflater.finish(&mut out);
        inflated.given += (out.len() - before) as u64;
        inflated.pieces.put(out);
        if let Err(reason) = result {
            self.stop(DamageKind::Compression(reason), 0);
        }
    }
}

impl StreamChunk {
    fn rest(&self) -> &[u8] {
        self.piece.get(self.at..).unwrap_or_default()
    }

    /// Consumes the current record, if it is complete.
    fn take(&mut self, header: Header, inflated: bool) -> Option<NextRecord> {
        let size = usize::from(header.size);
        if self.rest().len() < size {
            return None;
        }
        let at = self.at;
        self.at += size;
        Some(NextRecord { header, at, inflated, more: 0 })
    }

    /// Memory that begins with the unconsumed bytes, and has space for more.
    fn renew(&mut self, room: usize) -> BytesMut {
        let mut renewed = self.unused().unwrap_or_else(|| BytesMut::with_capacity(room));
        renewed.clear();
        renewed.extend_from_slice(self.rest());
        self.give_away();
        renewed
    }

    /// Drops the current chunk; parts of it may still be in use.
    fn give_away(&mut self) {
        self.used.push(std::mem::take(&mut self.piece));
        if self.used.len() > KEPT_PIECES {
            self.used.remove(0);
        }
        self.at = 0;
    }

    /// Memory of `len` bytes, which is at least the number of unconsumed bytes. It begins with these, and
    /// the contents of the following bytes are arbitrary. Only memory that was never used for a chunk is
    /// zeroed.
    fn renew_whole(&mut self, len: usize) -> BytesMut {
        let mut renewed = self.unused().unwrap_or_default();
        renewed.resize(len, 0);
        let rest = self.rest();
        renewed[..rest.len()].copy_from_slice(rest);
        self.give_away();
        renewed
    }

    fn put(&mut self, piece: BytesMut) {
        self.piece = piece.freeze();
    }

    /// Memory of an earlier chunk without parts in use. It is the latest such chunk, so that no
    /// more memory is used than needed.
    fn unused(&mut self) -> Option<BytesMut> {
        let place = self.used.iter().rposition(Bytes::is_unique)?;
        self.used.remove(place).try_into_mut().ok()
    }
}

/// Reads until the buffer is full, or contains at least `enough` bytes and no more are available now.
fn read_up_to(source: &mut StreamSource, buffer: &mut [u8], enough: usize) -> (usize, Option<io::Error>) {
    let mut read = 0;
    while read < buffer.len() && read < enough.max(1) {
        match source.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(len) => read += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (read, Some(error)),
        }
    }
    (read, None)
}
