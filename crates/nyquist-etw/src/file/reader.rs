//! Reads the events of a file by their times.

use super::buffer::BufferHeader;
use super::header;
use super::stream::{BufferPlace, Stream, read_header};
use super::{Compression, FileError};
use crate::Event;
use crate::kernel::{self, KernelEvent, TraceHeader};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{Read, Seek, SeekFrom};

/// The largest buffer of a session (the documentation of `EVENT_TRACE_PROPERTIES::BufferSize`: 16 MiB).
const MAX_BUFFER_BYTES: usize = 16 << 20;
/// The most memory for the current buffers of all CPUs.
const MAX_MEMORY: usize = 1 << 30;

/// Reads the events of a file by their times. One buffer of each CPU is in memory.
#[derive(Debug)]
pub struct FileReader<R> {
    file: R,
    header: TraceHeader,
    header_time: u64,
    compression: Option<Compression>,
    streams: Vec<Stream>,
    /// The time of the next event of each stream that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    has_begun: bool,
    /// The stream of the event that was read last.
    current: Option<usize>,
    /// The most bytes of a buffer's events.
    most: usize,
    len: u64,
    is_cut: bool,
}

impl<R: Read + Seek> FileReader<R> {
    /// Opens a file: reads what it says of itself, and finds its buffers.
    ///
    /// # Errors
    /// The file cannot be read, is no trace, or is compressed in a way that is not supported.
    pub fn open(mut file: R) -> Result<Self, FileError> {
        let len = file.seek(SeekFrom::End(0))?;
        let first =
            read_header(&mut file, 0)?.filter(BufferHeader::is_of_header).ok_or(FileError::NoHeader)?;
        let mut bytes = Vec::new();
        let used = u64::from(first.used.min(first.size)).min(MAX_BUFFER_BYTES as u64);
        (&mut file).take(used.saturating_sub(BufferHeader::SIZE as u64)).read_to_end(&mut bytes)?;
        let event = header::event(&bytes, 0).and_then(|found| found.event).ok_or(FileError::NoHeader)?;
        let Ok(Some(KernelEvent::Header(header))) = kernel::decode(&event) else {
            return Err(FileError::NoHeader);
        };
        let header_time = event.time;
        let compression = header.is_compressed().then(|| Compression::of(first.state as u16));
        if let Some(other @ Compression::Other(_)) = compression {
            return Err(FileError::Compressed(other));
        }
        let most = (header.buffer_size as usize).clamp(4096, MAX_BUFFER_BYTES);
        let (streams, is_cut) = find_buffers(&mut file, len)?;
        if streams.len().saturating_mul(most) > MAX_MEMORY {
            return Err(FileError::TooManyStreams { streams: streams.len(), buffer: most });
        }
        Ok(Self {
            file,
            header,
            header_time,
            compression,
            streams,
            next: BinaryHeap::new(),
            has_begun: false,
            current: None,
            most,
            len,
            is_cut,
        })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The time of the header, in units of the trace's clock. It is that of
    /// [`start_time`](TraceHeader::start_time).
    pub fn header_time(&self) -> u64 {
        self.header_time
    }

    /// The size of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is empty, which it cannot be.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the file ends within a buffer, or has one of an impossible size. What is behind is not read.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next event that a profile may need. `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, FileError> {
        if !self.has_begun {
            self.has_begun = true;
            for stream in 0..self.streams.len() {
                self.enqueue(stream)?;
            }
        }
        if let Some(stream) = self.current.take() {
            self.streams[stream].step();
            self.enqueue(stream)?;
        }
        let Some(Reverse((_, stream))) = self.next.pop() else { return Ok(None) };
        self.current = Some(stream);
        Ok(self.streams[stream].current())
    }

    /// Begins again with the first event.
    pub fn rewind(&mut self) {
        self.streams.iter_mut().for_each(Stream::rewind);
        self.next.clear();
        self.current = None;
        self.has_begun = false;
    }

    fn enqueue(&mut self, stream: usize) -> Result<(), FileError> {
        let Self { file, compression, most, streams, next, .. } = self;
        if let Some(time) = streams[stream].peek(file, *compression, *most)? {
            next.push(Reverse((time, stream)));
        }
        Ok(())
    }
}

/// The buffers of each CPU and session, and whether the file ends within one.
fn find_buffers(file: &mut (impl Read + Seek), len: u64) -> Result<(Vec<Stream>, bool), FileError> {
    let mut places: BTreeMap<(u16, u16), Vec<BufferPlace>> = BTreeMap::new();
    let mut at = 0;
    while let Some(header) = read_header(file, at)? {
        if (header.size as usize) < BufferHeader::SIZE {
            return Ok((streams(places), true));
        }
        places
            .entry((header.session, header.cpu))
            .or_default()
            .push(BufferPlace { sequence: header.sequence, at });
        at += u64::from(header.size);
    }
    Ok((streams(places), at != len))
}

fn streams(places: BTreeMap<(u16, u16), Vec<BufferPlace>>) -> Vec<Stream> {
    places.into_iter().map(|((_, cpu), places)| Stream::new(cpu, places)).collect()
}
