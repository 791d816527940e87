//! Reads a recording from start to end: its events, its features, and its records in sequence.

use nyquist_system::FileExt as _;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::description::add_description;
use super::error::{Damage, DamageKind, FileError};
use super::events::{EventTable, FileEvent};
use super::features::Features;
use super::header::{FileHeader, PerfSection, PerfSections};
use super::place::{Place, PlacedFiles};
use super::simpleperf;
use super::stream::{NextRecord, RecordStream, StreamRecord, StreamSource};
use super::tool::{self, tool_record};
use crate::{ByteOrder, EventAttr, Header};

/// The number of records read from one of several streams before checking again which stream is furthest
/// behind.
const RECORDS_IN_TURN: u32 = 256;

/// A reader of a recording: a file, a folder (`perf record --threads`) or a stream (`perf record -o -`).
///
/// [`read_next`](Self::read_next) returns its records. Damage ends the reading, and
/// [`damages`](Self::damages) reports it. All records before the damage have been returned by then.
#[derive(Debug)]
pub struct FileReader {
    order: ByteOrder,
    table: EventTable,
    features: Features,
    cpus: Vec<(u64, u32)>,
    lanes: Vec<StreamLane>,
    /// The stream that is being read, and the number of further records to read from it.
    turn: (usize, u32),
    damages: Vec<Damage>,
    auxtrace_bytes: u64,
    rounds: u64,
    /// The received part of a simpleperf record that is split.
    split: Vec<u8>,
}

/// One stream, and the progress in it.
#[derive(Debug)]
struct StreamLane {
    stream: RecordStream,
    ended: bool,
    /// The latest time of its records.
    latest: u64,
    /// The latest time at the end of the last round.
    marked: Option<u64>,
    /// Rounds whose end may still be inside the decompressor. Each has the offset in the
    /// decompressed data at which the end is output, and the time up to which all records are then available.
    due: VecDeque<(u64, u64)>,
}

/// The result of [`FileReader::next_stream`].
enum NextStream {
    /// This stream is next.
    Stream(usize),
    /// Another stream is next; all records up to this time have been returned.
    OtherStream(u64),
    /// All streams have ended.
    End,
}

/// The next item of a recording.
#[derive(Clone, Copy, Debug)]
pub enum RecordingItem<'a> {
    /// A record of the kernel, or a substitute that perf wrote.
    Record(FileRecord<'a>),
    /// All records older than this time have been returned.
    CompleteBefore(u64),
}

/// A record of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct FileRecord<'a> {
    /// The index of its event in [`FileReader::events`].
    pub event: usize,
    /// Its time, if it has one.
    pub time: Option<u64>,
    /// Its header.
    pub header: Header,
    /// The record, with its header.
    pub bytes: &'a [u8],
    /// The memory that contains it, for callers that keep parts of it.
    pub piece: &'a Bytes,
    /// Its position in the recording's [files](FileReader::files); `None` for records from a pipe or
    /// compressed ones.
    pub place: Option<Place>,
}

impl FileReader {
    /// Opens a recording: a file, or a folder from `perf record --threads`.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let read_error = |what| move |source| FileError::Read { what, source };
        let metadata = std::fs::metadata(path).map_err(read_error("the file"))?;
        if !metadata.is_dir() {
            return Self::open_file(File::open(path).map_err(read_error("the file"))?);
        }
        let main = File::open(path.join("data")).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NoData,
            _ => FileError::Read { what: "the file `data`", source: error },
        })?;
        let mut reader = Self::open_file(main)?;
        for (name, path) in data_files(path).map_err(read_error("the folder"))? {
            let file = File::open(path).map_err(read_error("a file of the folder"))?;
            reader.add_file(Arc::new(file), Some(name)).map_err(read_error("a file of the folder"))?;
        }
        Ok(reader)
    }

    /// Adds a file of a folder.
    fn add_file(&mut self, file: Arc<File>, name: Option<String>) -> io::Result<()> {
        let len = file.metadata()?.len();
        let source = StreamSource::File { file, at: 0 };
        self.lanes.push(StreamLane::new(RecordStream::new(source, Some(len), 0, name, self.order)));
        Ok(())
    }

    /// Another reader of the same open files, from their beginning. `None` for a pipe.
    pub fn again(&self) -> Option<Self> {
        let mut files = self.lanes.iter().map(|lane| lane.stream.file().cloned());
        let mut reader = Self::open_file(files.next()??.try_clone().ok()?).ok()?;
        for file in files {
            reader.add_file(file?, None).ok()?;
        }
        Some(reader)
    }

    /// Reads an open file. If it contains a stream's format, it is read as a stream.
    pub fn open_file(file: File) -> Result<Self, FileError> {
        let what = "the file's header";
        let len = file.metadata().map_err(|source| FileError::Read { what, source })?.len();
        let mut bytes = [0; FileHeader::FILE_LEN];
        let there = bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX));
        file.read_exact_at(&mut bytes[..there], 0).map_err(|source| FileError::Read { what, source })?;
        let header = parse_header(&bytes[..there])?;
        let file = Arc::new(file);
        let Some(sections) = header.sections else {
            let at = FileHeader::STREAM_LEN as u64;
            let source = StreamSource::File { file, at };
            return Ok(Self::streaming(source, Some(len.saturating_sub(at)), header.byte_order));
        };
        Self::open_sections(&file, len, sections, header.byte_order)
    }

    /// Reads a stream of `perf record -o -`, from its first byte on.
    pub fn open_stream(mut source: impl Read + Send + 'static) -> Result<Self, FileError> {
        let mut bytes = Vec::new();
        let what = "the stream's header";
        let error = |source| FileError::Read { what, source };
        source.by_ref().take(FileHeader::STREAM_LEN as u64).read_to_end(&mut bytes).map_err(error)?;
        let header = match parse_header(&bytes) {
            Err(FileError::CutHeader { .. }) if bytes.len() == FileHeader::STREAM_LEN => {
                return Err(FileError::FileInStream);
            }
            header => header?,
        };
        Ok(Self::streaming(StreamSource::Stream(Box::new(source)), None, header.byte_order))
    }

    fn streaming(source: StreamSource, left: Option<u64>, order: ByteOrder) -> Self {
        let stream = RecordStream::new(source, left, FileHeader::STREAM_LEN as u64, None, order);
        Self::new(stream, order)
    }

    fn new(stream: RecordStream, order: ByteOrder) -> Self {
        Self {
            order,
            table: EventTable::default(),
            features: Features::default(),
            cpus: Vec::new(),
            lanes: vec![StreamLane::new(stream)],
            turn: (0, RECORDS_IN_TURN),
            damages: Vec::new(),
            auxtrace_bytes: 0,
            rounds: 0,
            split: Vec::new(),
        }
    }

    fn open_sections(
        file: &Arc<File>,
        file_len: u64,
        sections: PerfSections,
        order: ByteOrder,
    ) -> Result<Self, FileError> {
        let data = sections.data;
        // If the recorder was killed, the header does not state where records end.
        let finished = data.size > 0;
        let data_len = if finished { data.size } else { file_len.saturating_sub(data.offset) };
        let source = StreamSource::File { file: Arc::clone(file), at: data.offset };
        let stream = RecordStream::new(source, Some(data_len), data.offset, None, order);
        let mut reader = Self::new(stream, order);
        reader.read_attrs(file, file_len, sections)?;
        if finished && data.end() <= file_len {
            reader.read_features(file, file_len, sections);
        } else if !finished && data_len > 0 {
            let kind = DamageKind::Unfinished;
            reader.damages.push(Damage { offset: file_len, file: None, kind, left_out: Some(0) });
        }
        reader.table.name(&reader.features.events);
        if let Some(simpleperf) = &reader.features.simpleperf {
            reader.table.name_by_type(simpleperf.event_names());
        }
        Ok(reader)
    }

    fn read_attrs(&mut self, file: &File, file_len: u64, sections: PerfSections) -> Result<(), FileError> {
        /// An entry consists of the attributes and, after them, the section of the ids.
        const IDS_LEN: usize = 16;
        let PerfSections { attr_len, attrs, .. } = sections;
        let whole = PerfSection { size: attrs.size.min(file_len.saturating_sub(attrs.offset)), ..attrs };
        let bytes = read_section(file, file_len, whole).unwrap_or_default();
        let entry_len = usize::try_from(attr_len).unwrap_or(usize::MAX);
        if entry_len < EventAttr::MIN_LEN + IDS_LEN {
            return Err(FileError::NoEvents);
        }
        for entry in bytes.chunks_exact(entry_len) {
            let (attr, ids) = entry.split_at(entry_len - IDS_LEN);
            let (Ok(attr), Some(ids)) = (EventAttr::parse(attr, self.order), self.section_at(ids, 0)) else {
                continue;
            };
            let ids = read_section(file, file_len, ids).unwrap_or_default();
            let ids = ids.as_chunks::<8>().0.iter().map(|id| self.order.u64(*id)).collect();
            self.table.add(attr, ids, self.order);
        }
        if self.table.events().is_empty() { Err(FileError::NoEvents) } else { Ok(()) }
    }

    /// Reads the sections after the records. Missing ones are left out.
    fn read_features(&mut self, file: &File, file_len: u64, sections: PerfSections) {
        let numbers: Vec<u32> = sections.feature_numbers().collect();
        let list = PerfSection { offset: sections.data.end(), size: 16 * numbers.len() as u64 };
        let Some(list) = read_section(file, file_len, list) else { return };
        for (place, number) in numbers.into_iter().enumerate() {
            let section = self.section_at(&list, 16 * place);
            if let Some(bytes) = section.and_then(|section| read_section(file, file_len, section)) {
                self.features.add(number, &bytes, self.order);
            }
        }
    }

    fn section_at(&self, bytes: &[u8], at: usize) -> Option<PerfSection> {
        let word = |at: usize| Some(self.order.u64(*bytes.get(at..)?.first_chunk()?));
        Some(PerfSection { offset: word(at)?, size: word(at + 8)? })
    }

    /// The events described so far. In a stream, they come before their first record.
    pub fn events(&self) -> &[FileEvent] {
        self.table.events()
    }

    /// The descriptions of the recording so far. For a file, they are complete when it is opened, except
    /// for build ids in records.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The CPU on which each event counts, by the event's id, if the recording contains it.
    pub fn event_cpus(&self) -> &[(u64, u32)] {
        &self.cpus
    }

    /// The byte order of all numbers.
    pub fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// The files with the records, for readers that read parts of them again.
    pub fn files(&self) -> PlacedFiles {
        self.lanes.iter().map(|lane| lane.stream.file().cloned()).collect()
    }

    /// The damaged positions found so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The number of bytes of AUX areas (traces of Intel PT, CoreSight and the like) that were skipped.
    pub fn auxtrace_bytes(&self) -> u64 {
        self.auxtrace_bytes
    }

    /// Whether the next record was already read into memory. Otherwise the next call of
    /// [`read_next`](Self::read_next) reads several hundred kilobytes.
    pub fn has_next(&self) -> bool {
        self.lanes.get(self.turn.0).is_some_and(|lane| lane.stream.has_next())
    }

    /// The next record, or the time up to which records are complete; `None` at the end.
    pub fn read_next(&mut self) -> Option<RecordingItem<'_>> {
        loop {
            let place = match self.next_stream() {
                NextStream::Stream(place) => place,
                NextStream::OtherStream(complete) => return Some(RecordingItem::CompleteBefore(complete)),
                NextStream::End => return None,
            };
            let lane = self.lanes.get_mut(place)?;
            let Some(next) = lane.stream.next() else {
                lane.ended = true;
                self.damages.extend(lane.stream.take_damage());
                self.turn.1 = 0;
                continue;
            };
            if next.header().kind < tool_record::FIRST {
                return Some(RecordingItem::Record(self.record(place, next)));
            }
            if let Some(complete) = self.tool_record(place, next) {
                return Some(RecordingItem::CompleteBefore(complete));
            }
        }
    }

    /// The stream to read next: the current one or, when its turn is over, the one that is furthest behind.
    fn next_stream(&mut self) -> NextStream {
        let (place, left) = self.turn;
        if left > 0 {
            self.turn.1 -= 1;
            return NextStream::Stream(place);
        }
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.ended);
        let Some((place, lane)) = lanes.min_by_key(|(_, lane)| lane.latest) else { return NextStream::End };
        let complete = lane.latest;
        self.turn = (place, RECORDS_IN_TURN);
        // A single stream is not in order; its rounds show up to which time it is complete.
        if self.lanes.len() > 1 {
            return NextStream::OtherStream(complete);
        }
        NextStream::Stream(place)
    }

    fn record(&mut self, place: usize, next: NextRecord) -> FileRecord<'_> {
        let lane = &mut self.lanes[place];
        let StreamRecord { header, piece, bytes, offset } = lane.stream.record(next);
        let event = self.table.event_of(header, bytes, self.order);
        let time = self.table.time_of(event, header, bytes, self.order);
        lane.latest = lane.latest.max(time.unwrap_or_default());
        let place = lane.stream.file().and(offset).map(|offset| Place::new(place, offset));
        FileRecord { event, time, header, bytes, piece, place }
    }

    /// Processes a record that perf wrote for its readers. Returns the time up to which all records have
    /// been returned, if that has increased.
    fn tool_record(&mut self, place: usize, next: NextRecord) -> Option<u64> {
        let order = self.order;
        let lane = &mut self.lanes[place];
        let bytes = lane.stream.record(next).bytes;
        let body = bytes.get(Header::LEN..).unwrap_or_default();
        match next.header().kind {
            tool_record::HEADER_ATTR
            | tool_record::EVENT_UPDATE
            | tool_record::HEADER_BUILD_ID
            | tool_record::HEADER_FEATURE => {
                add_description((&mut self.table, &mut self.features), next.header(), body, order);
            }
            tool_record::ID_INDEX => self.cpus.extend(tool::event_cpus(body, order)),
            tool_record::TRACING_DATA => {
                let len = tool::u32_at(body, 0, order).unwrap_or_default();
                self.features.tracing = lane.stream.take_bytes(len as usize);
            }
            tool_record::AUXTRACE => {
                let len = tool::u64_at(body, 0, order).unwrap_or_default();
                self.auxtrace_bytes = self.auxtrace_bytes.saturating_add(len);
                lane.stream.skip(len);
            }
            tool_record::COMPRESSED | tool_record::COMPRESSED2 => {
                let payload = tool::compressed_payload(next.header(), body, order);
                // Doubly compressed records could make a small file expand without limit.
                if !next.is_inflated() {
                    lane.stream.inflate(next, payload);
                }
            }
            kind if simpleperf::is_record(kind) => self.simpleperf_record(place, next),
            tool_record::FINISHED_ROUND => {
                self.rounds += 1;
                return lane.end_round();
            }
            _ => {}
        }
        self.lanes.get_mut(place)?.due_round()
    }

    /// Processes a record that simpleperf wrote for its readers. Some of these are split.
    fn simpleperf_record(&mut self, place: usize, next: NextRecord) {
        let requested = [
            simpleperf::record::KERNEL_SYMBOL,
            simpleperf::record::SPLIT,
            simpleperf::record::EVENT_ID,
            simpleperf::record::TRACING_DATA,
        ];
        let (kind, stream) = (next.header().kind, &mut self.lanes[place].stream);
        if kind == simpleperf::record::SPLIT_END {
            stream.skip(next.more());
            let whole = std::mem::take(&mut self.split);
            if let Ok(header) = Header::parse_in(&whole, self.order) {
                self.simpleperf_body(header.kind, whole.get(Header::LEN..).unwrap_or_default());
            }
        } else if requested.contains(&kind) {
            let body = stream.take_bytes(usize::try_from(next.more()).unwrap_or(usize::MAX));
            if kind == simpleperf::record::SPLIT {
                self.split.extend(body);
            } else {
                self.simpleperf_body(kind, &body);
            }
        } else {
            stream.skip(next.more());
        }
    }

    fn simpleperf_body(&mut self, kind: u32, body: &[u8]) {
        let counted = || simpleperf::counted(body, self.order).unwrap_or_default().to_vec();
        match kind {
            simpleperf::record::EVENT_ID => self.table.add_ids(&simpleperf::event_ids(body, self.order)),
            simpleperf::record::TRACING_DATA => self.features.tracing = counted(),
            simpleperf::record::KERNEL_SYMBOL => {
                self.features.simpleperf.get_or_insert_default().kallsyms = counted();
            }
            _ => {}
        }
    }
}

impl StreamLane {
    fn new(stream: RecordStream) -> Self {
        Self { stream, ended: false, latest: 0, marked: None, due: VecDeque::new() }
    }

    /// Handles the end of a round, in which perf has read all buffers once more. All records older than
    /// the latest of the previous round have been written.
    fn end_round(&mut self) -> Option<u64> {
        let complete = self.marked.replace(self.latest)?;
        match self.stream.inflated_range() {
            None => Some(complete),
            Some((_, upper)) => {
                self.due.push_back((upper, complete));
                self.due_round()
            }
        }
    }

    /// The time up to which all records are available, from rounds whose end was output by the decompressor.
    fn due_round(&mut self) -> Option<u64> {
        let (given, _) = self.stream.inflated_range()?;
        let mut complete = None;
        while let Some(&(_, time)) = self.due.front().filter(|(at, _)| *at <= given) {
            complete = Some(time);
            self.due.pop_front();
        }
        complete
    }
}

fn parse_header(bytes: &[u8]) -> Result<FileHeader, FileError> {
    match FileHeader::parse(bytes) {
        Some(header) => Ok(header),
        None if bytes.is_empty() => Err(FileError::Empty),
        None if FileHeader::is_magic(bytes) => Err(FileError::CutHeader { have: bytes.len() as u64 }),
        None => Err(FileError::NotPerfData),
    }
}

/// The files `data.0`, `data.1` and so on of a folder, sorted by number.
fn data_files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("data.").and_then(|number| number.parse::<u32>().ok());
        files.extend(number.map(|number| (number, name, entry.path())));
    }
    files.sort();
    Ok(files.into_iter().map(|(_, name, path)| (name, path)).collect())
}

/// Reads a section of a file. Memory is allocated only for existing bytes.
fn read_section(file: &File, file_len: u64, section: PerfSection) -> Option<Vec<u8>> {
    if section.offset.checked_add(section.size)? > file_len {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(section.size).ok()?];
    file.read_exact_at(&mut bytes, section.offset).ok()?;
    Some(bytes)
}
