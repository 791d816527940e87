//! The bytes of a section, which are read from the file when they are needed.

use nyquist_object::elf::ElfSection as Header;
use nyquist_object::macho::FileRange;
use nyquist_object::{ByteSource, Elf, MachO, ObjectError, Pe};
use std::borrow::Cow;
use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use nyquist_resources::{Budget, Charge};

/// Any source of bytes that threads can share.
pub(crate) type SharedSource = Arc<dyn ByteSource + Send + Sync>;

/// The bytes of a file that are read in one call for strings and lists.
const BLOCK: u64 = 64 << 10;

/// The largest section that is accepted. No linker makes one that is nearly as large.
const MAX_SECTION: u64 = 64 << 30;

/// How many times a piece must fit into the budget, because threads read pieces in parallel, each into
/// several buffers.
const PIECES: u64 = 8;

/// The longest string that is accepted.
const MAX_STRING: u64 = 256 << 10;

/// How many strings are read one by one for each block of a section before blocks are read. A block costs as
/// much as about eighty strings, mostly for its memory.
const SINGLES_A_BLOCK: usize = 80;

/// The bytes that are read of a single string, and the bytes that are read if it is longer than that.
const SHORT_STRING: usize = 256;
const LONG_STRING: usize = 4 << 10;

/// A section's contents. If it is uncompressed in a file, only the needed blocks are in memory. Reading a
/// block takes no lock after it was loaded.
pub(crate) enum SectionContents {
    /// Decompressed bytes, or an image that is in memory anyway.
    Memory { bytes: Vec<u8>, _charge: Option<Charge> },
    /// In a file.
    File {
        source: SharedSource,
        offset: u64,
        len: u64,
        blocks: Vec<OnceLock<Option<Box<[u8]>>>>,
        /// How many strings have been read one by one.
        singles: AtomicUsize,
        /// The memory of the blocks.
        charge: Option<Charge>,
    },
}

impl Default for SectionContents {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<u8>> for SectionContents {
    /// Bytes that are in memory anyway.
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory { bytes, _charge: None }
    }
}

impl SectionContents {
    /// The section with this name. It is empty if the file does not have it.
    pub(crate) fn open(elf: &Elf<SharedSource>, name: &str) -> Result<Self, ObjectError> {
        match elf.section(name) {
            Some(header) if header.has_bytes() && !elf.is_compressed(header) => {
                Ok(Self::in_file(elf.source(), header))
            }
            _ => Self::charged(elf.section_data(name)?.unwrap_or_default(), elf.source()),
        }
    }

    /// The section with this name in a PE image.
    pub(crate) fn open_pe(pe: &Pe<SharedSource>, name: &str) -> Option<Self> {
        let header = pe.section(name)?;
        Some(Self::at(pe.source(), header.offset.0, header.size().into()))
    }

    /// The section of debug information with this name in a Mach-O file.
    pub(crate) fn open_macho(file: &MachO<SharedSource>, name: &str) -> Option<Self> {
        match file.debug_section(name) {
            Some(section) => Some(Self::at(file.source(), section.offset?.0, section.size)),
            None => Self::charged(file.debug_data(name).ok()??, file.source()).ok(),
        }
    }

    /// A range of a file.
    pub(crate) fn of_range(source: &SharedSource, range: FileRange) -> Self {
        Self::at(source, range.offset.0, range.size)
    }

    /// Bytes that were decompressed.
    fn charged(bytes: Vec<u8>, source: &SharedSource) -> Result<Self, ObjectError> {
        let charge = source.budget().map(Budget::charge);
        match source.budget().zip(charge.as_ref()) {
            Some((budget, charge)) if !charge.take(bytes.len() as u64) => {
                Err(ObjectError::TooLarge { bytes: bytes.len() as u64, most: budget.most() })
            }
            _ => Ok(Self::Memory { bytes, _charge: charge }),
        }
    }

    fn in_file(source: &SharedSource, header: &Header) -> Self {
        Self::at(source, header.offset.0, header.size)
    }

    /// A part of a file.
    pub(crate) fn at(source: &SharedSource, offset: u64, size: u64) -> Self {
        let len = size.min(source.len().saturating_sub(offset)).min(MAX_SECTION);
        let blocks = (0..len.div_ceil(BLOCK)).map(|_| OnceLock::new()).collect();
        let charge = source.budget().map(Budget::charge);
        Self::File { source: source.clone(), offset, len, blocks, singles: AtomicUsize::new(0), charge }
    }

    /// The bytes of a section that is in memory, unless it is empty.
    pub(crate) fn memory(&self) -> Option<&[u8]> {
        match self {
            Self::Memory { bytes, .. } if !bytes.is_empty() => Some(bytes),
            _ => None,
        }
    }

    /// The same bytes, of which nothing has been read yet.
    pub(crate) fn unread(&self) -> Self {
        match self {
            Self::Memory { bytes, .. } => Self::from(bytes.clone()),
            Self::File { source, offset, len, .. } => Self::at(source, *offset, *len),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory { bytes, .. } => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// All bytes of `range`, which are read into `scratch` if they are not in memory. It is for ranges that
    /// are used once.
    pub(crate) fn slice<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Self::Memory { bytes, .. } => {
                bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
            }
            Self::File { source, offset, len, .. } => {
                let size = range.end.checked_sub(range.start).filter(|_| range.end <= *len)?;
                let size = usize::try_from(size).ok()?;
                // It never shrinks, because growing it would fill it with zeros again.
                if scratch.len() < size {
                    source.check_room((size as u64).saturating_mul(PIECES)).ok()?;
                    scratch.resize(size, 0);
                }
                let bytes = &mut scratch[..size];
                source.read_exact_at(offset + range.start, bytes).ok()?;
                Some(bytes)
            }
        }
    }

    /// As [`SectionContents::slice`]: the bytes from `offset` on, `want` of them, or fewer if the section ends
    /// earlier.
    pub(crate) fn head<'a>(&'a self, offset: u64, want: u64, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        self.slice(offset..offset.checked_add(want)?.min(self.len()), scratch)
    }

    /// The bytes from `offset` on: `want` of them, or fewer if the section ends earlier. They are kept for
    /// the next reader.
    pub(crate) fn window(&self, offset: u64, want: u64) -> Option<Cow<'_, [u8]>> {
        let end = offset.checked_add(want)?.min(self.len());
        if offset > end {
            return None;
        }
        let first = self.chunk(offset)?;
        let size = usize::try_from(end - offset).ok()?;
        if let Some(bytes) = first.get(..size) {
            return Some(Cow::Borrowed(bytes));
        }
        let mut bytes = first.to_vec();
        while bytes.len() < size {
            let chunk = self.chunk(offset + bytes.len() as u64)?;
            bytes.extend_from_slice(&chunk[..chunk.len().min(size - bytes.len())]);
        }
        Some(Cow::Owned(bytes))
    }

    /// The bytes from `offset` to the end of its block; none only at the section's end.
    fn chunk(&self, offset: u64) -> Option<&[u8]> {
        match self {
            Self::Memory { bytes, .. } => bytes.get(usize::try_from(offset).ok()?..),
            Self::File { len, .. } if offset == *len => Some(&[]),
            Self::File { source, offset: start, len, blocks, charge, .. } => {
                let number = offset / BLOCK;
                let block = blocks.get(usize::try_from(number).ok()?)?;
                let bytes = block.get_or_init(|| {
                    let size = BLOCK.min(len - number * BLOCK);
                    if charge.as_ref().is_some_and(|charge| !charge.take(size)) {
                        return None;
                    }
                    let mut bytes = vec![0; size as usize];
                    source.read_exact_at(start + number * BLOCK, &mut bytes).ok()?;
                    Some(bytes.into_boxed_slice())
                });
                bytes.as_ref()?.get((offset % BLOCK) as usize..)
            }
        }
    }

    /// The string that begins at `offset`, without the zero that ends it.
    ///
    /// A few strings are read one by one, without reading more of the file. If many are needed, whole blocks
    /// cost less.
    pub(crate) fn string(&self, offset: u64) -> Option<Cow<'_, [u8]>> {
        if let Self::File { blocks, singles, .. } = self
            && singles.fetch_add(1, Ordering::Relaxed) < blocks.len() * SINGLES_A_BLOCK
        {
            let single = self.single::<SHORT_STRING>(offset).or_else(|| self.single::<LONG_STRING>(offset));
            if let Some(string) = single {
                return Some(Cow::Owned(string));
            }
        }
        let first = self.chunk(offset)?;
        match up_to_zero(first) {
            Some(string) => Some(Cow::Borrowed(string)),
            None => self.long_string(offset, first).map(Cow::Owned),
        }
    }

    /// Reads a single string of less than `SIZE` bytes from a file.
    fn single<const SIZE: usize>(&self, offset: u64) -> Option<Vec<u8>> {
        let Self::File { source, offset: start, len, .. } = self else { return None };
        let mut bytes = [0; SIZE];
        let bytes = &mut bytes[..usize::try_from(len.checked_sub(offset)?).ok()?.min(SIZE)];
        source.read_exact_at(start + offset, bytes).ok()?;
        up_to_zero(bytes).map(<[u8]>::to_vec)
    }

    /// A string that continues after the chunk `first` at `offset`, which has no zero byte.
    fn long_string(&self, offset: u64, first: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = first.to_vec();
        while (bytes.len() as u64) < MAX_STRING {
            let chunk = self.chunk(offset + bytes.len() as u64).filter(|chunk| !chunk.is_empty())?;
            if let Some(end) = up_to_zero(chunk) {
                bytes.extend_from_slice(end);
                return Some(bytes);
            }
            bytes.extend_from_slice(chunk);
        }
        None
    }
}

/// The last bytes that were read of a section, for readers that continue nearby. Nothing else is kept.
#[derive(Debug)]
pub(crate) struct SectionWindow<'b> {
    buffer: &'b mut Vec<u8>,
    covered: Range<u64>,
    /// The minimum number of bytes that are read in one call.
    ahead: u64,
}

impl<'b> SectionWindow<'b> {
    /// A window that reads `ahead` bytes into `buffer` when it has to read.
    pub(crate) fn new(buffer: &'b mut Vec<u8>, ahead: u64) -> Self {
        Self { buffer, covered: 0..0, ahead }
    }

    /// The bytes from `offset` on: `want` of them, or fewer if the section ends earlier. A window must be
    /// used with the same section at every call.
    pub(crate) fn read<'a>(
        &'a mut self,
        section: &'a SectionContents,
        offset: u64,
        want: u64,
    ) -> Option<&'a [u8]> {
        let end = offset.checked_add(want)?.min(section.len());
        if let SectionContents::Memory { .. } = section {
            return section.slice(offset..end, self.buffer);
        }
        if offset < self.covered.start || end > self.covered.end {
            let reach = offset.saturating_add(want.max(self.ahead)).min(section.len());
            self.covered = 0..0;
            section.slice(offset..reach, self.buffer)?;
            self.covered = offset..reach;
        }
        let start = offset.checked_sub(self.covered.start)?;
        self.buffer.get(start as usize..usize::try_from(end - self.covered.start).ok()?)
    }
}

/// The bytes before the first zero.
fn up_to_zero(bytes: &[u8]) -> Option<&[u8]> {
    CStr::from_bytes_until_nul(bytes).ok().map(CStr::to_bytes)
}

impl ByteSource for SectionContents {
    fn len(&self) -> u64 {
        self.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.window(offset, buffer.len() as u64);
        let whole = bytes.filter(|bytes| bytes.len() == buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(&whole);
        Ok(())
    }
}

impl std::fmt::Debug for SectionContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Section({} bytes)", self.len())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Bytes, and how many of them were read.
    pub(crate) struct CountedBytes {
        bytes: Vec<u8>,
        read: AtomicU64,
    }

    impl CountedBytes {
        pub(crate) fn new(bytes: Vec<u8>) -> Self {
            Self { bytes, read: AtomicU64::new(0) }
        }

        /// How many bytes were read since the last call.
        pub(crate) fn take_read(&self) -> u64 {
            self.read.swap(0, Ordering::Relaxed)
        }
    }

    impl ByteSource for CountedBytes {
        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            self.bytes.read_exact_at(offset, buffer)
        }
    }

    #[test]
    fn a_window_shows_the_section_after_any_move() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let source: SharedSource = Arc::new(bytes.clone());
        for section in [SectionContents::at(&source, 0, 1000), SectionContents::from(bytes.clone())] {
            let mut buffer = Vec::new();
            let mut window = SectionWindow::new(&mut buffer, 100);
            for (offset, want) in [
                (0, 10),
                (90, 10),
                (90, 11),
                (50, 300),
                (349, 1),
                (350, 1),
                (990, 100),
                (1000, 5),
                (3, 0),
                (2, 1),
            ] {
                let end = bytes.len().min(offset + want);
                let read = window.read(&section, offset as u64, want as u64);
                assert_eq!(read, bytes.get(offset..end), "{offset} {want}");
            }
            assert_eq!(window.read(&section, 1001, 1), None);
            assert_eq!(window.read(&section, 1001, 0), None);
            assert_eq!(window.read(&section, u64::MAX, 1), None);
        }
    }

    #[test]
    fn a_string_may_cross_blocks_within_its_section() {
        let block = BLOCK as usize;
        let mut bytes = vec![b'x'; 3 * block];
        bytes[block - 301] = 0;
        bytes[block + 5] = 0;
        bytes[2 * block] = 0;
        let source: SharedSource = Arc::new(bytes);
        let section = SectionContents::at(&source, 0, 3 * BLOCK);
        for (offset, expected) in [
            (block - 300, Some(305)),
            (block + 5, Some(0)),
            (block + 6, Some(block - 6)),
            (2 * block + 1, None),
            (3 * block, None),
            (3 * block + 1, None),
        ] {
            let string = section.string(offset as u64);
            assert_eq!(string.map(|string| string.len()), expected, "{offset}");
        }
    }
}
