//! The files of a cache by their addresses in memory.

use crate::{ByteSource, FileOffset, ObjectError};
use std::io;

/// A mapped range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheMapping {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) offset: FileOffset,
}

/// All files of a cache, by their addresses.
#[derive(Debug)]
pub(super) struct CacheSpace<S> {
    files: Vec<S>,
    /// Each with the index of its file.
    mappings: Vec<(CacheMapping, usize)>,
}

impl<S> Default for CacheSpace<S> {
    fn default() -> Self {
        Self { files: Vec::new(), mappings: Vec::new() }
    }
}

impl<S: ByteSource> CacheSpace<S> {
    pub(super) fn add(&mut self, mappings: Vec<CacheMapping>, file: S) {
        let number = self.files.len();
        self.files.push(file);
        self.mappings.extend(mappings.into_iter().map(|mapping| (mapping, number)));
    }

    /// The address of the first file's first mapping, to which libraries' offsets are relative.
    pub(super) fn start(&self) -> u64 {
        self.mappings.first().map_or(0, |(mapping, _)| mapping.address)
    }

    /// The file at an address, the offset in it, and the number of bytes of the same mapping from there on.
    pub(super) fn find(&self, address: u64) -> Option<(&S, u64, u64)> {
        self.mappings.iter().find_map(|(mapping, file)| {
            let inside = address.checked_sub(mapping.address)?;
            let room = mapping.size.checked_sub(inside).filter(|room| *room > 0)?;
            Some((self.files.get(*file)?, mapping.offset.0.checked_add(inside)?, room))
        })
    }

    /// The bytes at an address, which must be in one mapping.
    pub(super) fn read(&self, address: u64, size: u64) -> Result<Vec<u8>, ObjectError> {
        let missing = || ObjectError::Read {
            offset: address,
            len: size,
            source: io::Error::new(io::ErrorKind::NotFound, "a file of the shared cache is missing"),
        };
        let (file, offset, room) = self.find(address).ok_or_else(missing)?;
        if room < size {
            return Err(missing());
        }
        file.read_range(offset, size)
    }

    /// The string at an address, if it is not longer than `most` bytes.
    pub(super) fn string(&self, address: u64, most: u64) -> Option<Vec<u8>> {
        let (file, offset, room) = self.find(address)?;
        string(file, offset, room.min(most))
    }
}

/// The string at an offset of a file, if it ends within `room`.
pub(super) fn string<S: ByteSource>(file: &S, offset: u64, room: u64) -> Option<Vec<u8>> {
    const FIRST: u64 = 256;
    let room = room.min(file.len().checked_sub(offset)?);
    for size in [room.min(FIRST), room] {
        let mut bytes = file.read_range(offset, size).ok()?;
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(end);
            return Some(bytes);
        }
    }
    None
}

/// A part of the memory as a file, which starts at an address.
pub(super) struct SpaceFile<'a, S> {
    pub(super) space: &'a CacheSpace<S>,
    pub(super) address: u64,
}

impl<S: ByteSource> ByteSource for SpaceFile<'_, S> {
    fn len(&self) -> u64 {
        self.space.find(self.address).map_or(0, |(.., room)| room)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.len());
        let found = end.and(self.space.find(self.address));
        let (file, start, _) = found.ok_or(io::ErrorKind::UnexpectedEof)?;
        file.read_exact_at(start.checked_add(offset).ok_or(io::ErrorKind::UnexpectedEof)?, buffer)
    }
}
