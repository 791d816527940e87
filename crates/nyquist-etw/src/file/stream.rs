//! The buffers of one CPU in one session, read one after the other.

use super::Compression;
use super::buffer::BufferHeader;
use super::header::{self, EventInBuffer};
use std::io::{self, Read, Seek, SeekFrom};

/// Where a buffer is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BufferPlace {
    pub(super) sequence: u64,
    pub(super) at: u64,
}

/// The buffers of one CPU in one session.
#[derive(Debug)]
pub(super) struct Stream {
    cpu: u16,
    /// The buffers, in their order.
    places: Vec<BufferPlace>,
    /// How many of them were read.
    read: usize,
    /// The events of the current buffer.
    events: Vec<u8>,
    /// Where the next event is in them.
    at: usize,
}

impl Stream {
    pub(super) fn new(cpu: u16, mut places: Vec<BufferPlace>) -> Self {
        places.sort_unstable();
        Self { cpu, places, read: 0, events: Vec::new(), at: 0 }
    }

    /// Begins again with the first buffer.
    pub(super) fn rewind(&mut self) {
        (self.read, self.at) = (0, 0);
        self.events.clear();
    }

    /// The time of the next event that is understood. Reads the next buffer if this one has no more. `None` at
    /// the end.
    pub(super) fn peek(
        &mut self,
        file: &mut (impl Read + Seek),
        compression: Option<Compression>,
        most: usize,
    ) -> io::Result<Option<u64>> {
        loop {
            while let Some(EventInBuffer { event, size }) = self.current_event() {
                if let Some(event) = event {
                    return Ok(Some(event.time));
                }
                self.at += size;
            }
            let Some(place) = self.places.get(self.read) else { return Ok(None) };
            self.read += 1;
            self.at = 0;
            self.events.clear();
            read_events(file, place.at, compression, most, &mut self.events)?;
        }
    }

    /// The event that was looked at.
    pub(super) fn current(&self) -> Option<crate::Event<'_>> {
        self.current_event()?.event
    }

    /// Goes on behind it.
    pub(super) fn step(&mut self) {
        self.at += self.current_event().map_or(0, |found| found.size);
    }

    fn current_event(&self) -> Option<EventInBuffer<'_>> {
        header::event(self.events.get(self.at..)?, self.cpu).filter(|found| found.size > 0)
    }
}

/// Appends the events of the buffer at a place in the file, at most that many bytes. A buffer that ends early has
/// the events until there.
fn read_events(
    file: &mut (impl Read + Seek),
    at: u64,
    compression: Option<Compression>,
    most: usize,
    events: &mut Vec<u8>,
) -> io::Result<()> {
    let Some(header) = read_header(file, at)? else { return Ok(()) };
    let in_file = u64::from(header.size).saturating_sub(BufferHeader::SIZE as u64);
    let used = (header.used as usize).saturating_sub(BufferHeader::SIZE).min(most);
    let compression = compression.filter(|_| header.is_compressed());
    let Some(compression) = compression else {
        (&mut *file).take(in_file.min(used as u64)).read_to_end(events)?;
        return Ok(());
    };
    let mut packed = Vec::new();
    (&mut *file).take(in_file.min(2 * most as u64)).read_to_end(&mut packed)?;
    compression.decompress(&packed, events, used);
    Ok(())
}

/// The header of the buffer at a place in the file; `None` if the file ends there. The file is then behind it.
pub(super) fn read_header(file: &mut (impl Read + Seek), at: u64) -> io::Result<Option<BufferHeader>> {
    let mut bytes = [0; BufferHeader::SIZE];
    file.seek(SeekFrom::Start(at))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(BufferHeader::parse(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
