//! Chunks of a JFR recording, each of which can be read separately: a head, events, metadata and constants.
//!
//! The format is documented in the sources of the JDK (`src/hotspot/share/jfr`, `jdk.jfr.internal.consumer`)
//! and of async-profiler.

use rustc_hash::FxHashMap;

use super::cursor::ChunkCursor;
use super::metadata::Metadata;
use super::values::{JfrValue, ValueDecoder};

/// The first bytes of a chunk.
pub(crate) const MAGIC: &[u8] = b"FLR\0";

/// The bytes of a chunk's head.
const HEAD: usize = 68;

/// The type numbers of the events that describe the others.
const METADATA: u64 = 0;
const CHECKPOINT: u64 = 1;

/// A chunk.
pub(super) struct Chunk<'a> {
    bytes: &'a [u8],
    clock: Clock,
    is_compressed: bool,
    pub(super) metadata: Metadata<'a>,
    /// The place of each constant, by its class and number.
    constants: FxHashMap<(u64, u64), usize>,
    /// The number of events of each class.
    pub(super) counts: FxHashMap<u64, u64>,
    /// Whether a part of it cannot be read.
    pub(super) is_damaged: bool,
}

/// The conversion of ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// When the chunk begins, in ns since 1970.
    start: u64,
    start_ticks: u64,
    ticks_per_second: u64,
}

impl Clock {
    fn nanoseconds(self, ticks: u64) -> u64 {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second.max(1));
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    fn time(self, ticks: u64) -> u64 {
        match ticks.checked_sub(self.start_ticks) {
            Some(after) => self.start.saturating_add(self.nanoseconds(after)),
            None => self.start.saturating_sub(self.nanoseconds(self.start_ticks - ticks)),
        }
    }
}

/// The extent of the chunk that begins here: its bytes, and whether it is complete.
pub(super) fn extent(bytes: &[u8]) -> Option<(&[u8], bool)> {
    if !bytes.starts_with(MAGIC) || bytes.len() < HEAD {
        return None;
    }
    let size = usize::try_from(number(bytes, 8)).unwrap_or(usize::MAX);
    // A killed program has not written the size.
    let is_whole = size >= HEAD && size <= bytes.len();
    Some((if is_whole { &bytes[..size] } else { bytes }, is_whole))
}

/// The number of 64 bits at this offset.
fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl<'a> Chunk<'a> {
    /// Reads the metadata and finds the constants of a chunk. `None` if it has no metadata.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let is_compressed = bytes.get(HEAD - 1).is_some_and(|features| features & 1 == 1);
        let clock = Clock {
            start: number(bytes, 32),
            start_ticks: number(bytes, 48),
            ticks_per_second: number(bytes, 56),
        };
        let mut chunk = Self {
            bytes,
            clock,
            is_compressed,
            metadata: Metadata::default(),
            constants: FxHashMap::default(),
            counts: FxHashMap::default(),
            is_damaged: false,
        };
        let mut checkpoints = Vec::new();
        let mut metadata = None;
        let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
        let mut events = chunk.events();
        for event in events.by_ref() {
            match event.class {
                METADATA => metadata = Some(event),
                CHECKPOINT => checkpoints.push(event),
                class => *counts.entry(class).or_default() += 1,
            }
        }
        chunk.is_damaged = events.cursor.remaining() > 0;
        chunk.counts = counts;
        let mut cursor = metadata?.cursor;
        // Its time, its duration and its number.
        let _head = (cursor.long()?, cursor.long()?, cursor.long()?);
        chunk.metadata = Metadata::read(&mut cursor)?;
        for checkpoint in checkpoints {
            chunk.is_damaged |= chunk.find_constants(checkpoint.cursor).is_none();
        }
        Some(chunk)
    }

    /// Its events, as far as their boundaries are valid.
    pub(super) fn events(&self) -> ChunkEvents<'a> {
        ChunkEvents {
            cursor: ChunkCursor::new(self.bytes, HEAD, self.is_compressed),
            is_compressed: self.is_compressed,
            bytes: self.bytes,
        }
    }

    fn find_constants(&mut self, mut cursor: ChunkCursor<'a>) -> Option<()> {
        // Its time, its duration, where the checkpoint before it is, and its kind.
        let _head = (cursor.long()?, cursor.long()?, cursor.long()?, cursor.byte()?);
        let mut decoder = ValueDecoder::new(&self.metadata, cursor.remaining());
        for _ in 0..cursor.int()? {
            let class = cursor.long()?;
            for _ in 0..cursor.count()? {
                let key = cursor.long()?;
                self.constants.insert((class, key), cursor.at());
                decoder.constant(&mut cursor, class)?;
            }
        }
        Some(())
    }

    /// A decoder of its values.
    pub(super) fn decoder(&self) -> ValueDecoder<'_, 'a> {
        ValueDecoder::new(&self.metadata, self.bytes.len())
    }

    /// The constant with this class and number.
    pub(super) fn constant(&self, class: u64, key: u64) -> Option<JfrValue<'a>> {
        let &at = self.constants.get(&(class, key))?;
        let mut cursor = ChunkCursor::new(self.bytes, at, self.is_compressed);
        ValueDecoder::new(&self.metadata, self.bytes.len() - at).constant(&mut cursor, class)
    }

    /// A time in ns since 1970.
    pub(super) fn time(&self, ticks: u64) -> u64 {
        self.clock.time(ticks)
    }

    /// A number of ticks in ns.
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        self.clock.nanoseconds(ticks)
    }
}

/// An event: its class, and its fields as they are stored.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) class: u64,
    pub(super) cursor: ChunkCursor<'a>,
}

/// The events of a chunk.
pub(super) struct ChunkEvents<'a> {
    bytes: &'a [u8],
    /// The place of the next event, or of the first unreadable one.
    cursor: ChunkCursor<'a>,
    is_compressed: bool,
}

impl<'a> Iterator for ChunkEvents<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let start = self.cursor.at();
        let mut cursor = self.cursor;
        let size = usize::try_from(cursor.int()?).ok()?;
        let event = self.bytes.get(..start.checked_add(size)?)?;
        let mut cursor = ChunkCursor::new(event, cursor.at(), self.is_compressed);
        let class = cursor.long()?;
        self.cursor = ChunkCursor::new(self.bytes, event.len(), self.is_compressed);
        Some(Event { class, cursor })
    }
}
