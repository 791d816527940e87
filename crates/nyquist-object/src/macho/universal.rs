//! Universal ("fat") files: several Mach-O files in one, one for each architecture (Apple's `mach-o/fat.h`).

use super::{MachO, architecture};
use crate::{Architecture, ByteSource, FileOffset, ObjectError};
use std::io;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xba, 0xbe];
const MAGIC_64: [u8; 4] = [0xca, 0xfe, 0xba, 0xbf];

/// The maximum number of architectures of a file. A Java class file begins with the same magic number, and
/// has its version at this position, which has never been as low.
const MAX_SLICES: u32 = 40;

/// One of the files in a universal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniversalSlice {
    /// The instruction set.
    pub architecture: Architecture,
    /// The variant of it.
    pub cpu_subtype: u32,
    /// The start of the file.
    pub offset: FileOffset,
    /// Its size in bytes.
    pub size: u64,
}

/// The table of a universal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniversalFile {
    slices: Vec<UniversalSlice>,
}

impl UniversalFile {
    /// Reads the table.
    ///
    /// # Errors
    /// If the file is not a universal file, or ends within its table.
    pub fn read(source: &impl ByteSource) -> Result<Self, ObjectError> {
        let mut header = [0; 8];
        source.read_exact_at(0, &mut header).map_err(|_| ObjectError::NotAnObject)?;
        let [magic @ .., a, b, c, d] = header;
        let (count, is_64) = (u32::from_be_bytes([a, b, c, d]), magic == MAGIC_64);
        if !matches!(magic, MAGIC | MAGIC_64) || count > MAX_SLICES {
            return Err(ObjectError::NotAnObject);
        }
        let size = if is_64 { 32 } else { 20 };
        let table = source.read_range(8, u64::from(count) * size)?;
        Ok(Self { slices: table.chunks_exact(size as usize).map(|entry| slice(entry, is_64)).collect() })
    }

    /// The files in it, in order.
    pub fn slices(&self) -> &[UniversalSlice] {
        &self.slices
    }
}

/// An entry of the table: `cputype`, `cpusubtype`, then offset and size, of 32 or 64 bits.
fn slice(entry: &[u8], is_64: bool) -> UniversalSlice {
    let number = |at: usize, len: usize| {
        let bytes = entry.get(at..at + len).unwrap_or_default();
        bytes.iter().fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
    };
    let (offset, size) = if is_64 { (number(8, 8), number(16, 8)) } else { (number(8, 4), number(12, 4)) };
    UniversalSlice {
        architecture: architecture(number(0, 4) as u32),
        cpu_subtype: number(4, 4) as u32 & 0x00ff_ffff,
        offset: FileOffset(offset),
        size,
    }
}

/// A part of a source, as a separate source.
#[derive(Clone, Copy, Debug)]
pub struct SourceRange<S> {
    source: S,
    start: u64,
    len: u64,
}

impl<S: ByteSource> SourceRange<S> {
    /// The `len` bytes from `start` on, or fewer if the source ends earlier.
    pub fn new(source: S, start: FileOffset, len: u64) -> Self {
        Self { source, start: start.0, len }
    }

    /// Where it begins in the source.
    pub fn start(&self) -> FileOffset {
        FileOffset(self.start)
    }
}

impl<S: ByteSource> ByteSource for SourceRange<S> {
    fn len(&self) -> u64 {
        self.source.len().saturating_sub(self.start).min(self.len)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= self.len);
        let start = end.and(self.start.checked_add(offset)).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.source.read_exact_at(start, buffer)
    }
}

impl<S: ByteSource> MachO<SourceRange<S>> {
    /// Opens the file for an architecture: a slice of a universal file, or a file for this architecture
    /// alone. If there are several slices for the architecture, such as `arm64` and `arm64e`, the first
    /// one that `accept` accepts is chosen, such as the one with the right id.
    ///
    /// # Errors
    /// If it is neither, or contains nothing for the architecture.
    pub fn open_for(
        source: S,
        architecture: Architecture,
        accept: impl Fn(&MachO<SourceRange<&S>>) -> bool,
    ) -> Result<Self, ObjectError> {
        let none = || ObjectError::Unsupported(format!("Mach-O without code for {architecture:?}"));
        let universal = match UniversalFile::read(&source) {
            Ok(universal) => universal,
            Err(ObjectError::NotAnObject) => {
                let len = source.len();
                let file = Self::open(SourceRange::new(source, FileOffset(0), len))?;
                return if file.architecture == architecture { Ok(file) } else { Err(none()) };
            }
            Err(error) => return Err(error),
        };
        let is_right = |slice: &&UniversalSlice| {
            let file = MachO::open(SourceRange::new(&source, slice.offset, slice.size));
            slice.architecture == architecture && file.is_ok_and(|file| accept(&file))
        };
        let slice = *universal.slices.iter().find(is_right).ok_or_else(none)?;
        Self::open(SourceRange::new(source, slice.offset, slice.size))
    }
}
