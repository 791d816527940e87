//! Reads an object file's bytes so that a change of the file during reading does no harm.

use crate::ObjectError;
use nyquist_resources::{Budget, Charge};
use nyquist_system::{FileFacts, HeldFile, has_data};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A file up to this size may consist of a single hole.
const MAX_HOLE_FILE_SIZE: u64 = 256 << 20;

/// A larger file must have at least one allocated byte in this many.
const HOLLOW: u64 = 8;

/// Random access to the bytes of an object file.
///
/// Files are read with `pread` and not mapped. If a mapped file is truncated (by a rebuild), access to the
/// missing page ends the process.
pub trait ByteSource {
    /// The current number of bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `offset` on. Missing bytes cause an error.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The file that consists of exactly these bytes, if there is one.
    fn as_file(&self) -> Option<&FileSource> {
        None
    }

    /// The memory budget for these bytes, if it is limited.
    fn budget(&self) -> Option<&Budget> {
        None
    }

    /// Checks whether that many bytes, derived from these, may be in memory temporarily.
    ///
    /// # Errors
    /// If they exceed the budget.
    fn check_room(&self, bytes: u64) -> Result<(), ObjectError> {
        match self.budget() {
            Some(budget) if !budget.has(bytes) => Err(ObjectError::TooLarge { bytes, most: budget.most() }),
            _ => Ok(()),
        }
    }

    /// The `len` bytes from `offset` on. Memory is allocated only for existing bytes, and within the budget.
    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        let failed = |source| ObjectError::Read { offset, len, source };
        self.check_room(len)?;
        let end = offset.checked_add(len).filter(|&end| end <= self.len());
        let Some(size) = end.and(usize::try_from(len).ok()) else {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        };
        let mut bytes = vec![0; size];
        self.read_exact_at(offset, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

impl ByteSource for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let bytes = start.checked_add(buffer.len()).and_then(|end| self.get(start..end));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// The same as the provided method, without intermediate zeros.
    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(usize::try_from(len).ok()?)?));
        let bytes = range.and_then(|range| self.get(range)).map(<[u8]>::to_vec);
        bytes.ok_or_else(|| ObjectError::Read { offset, len, source: io::ErrorKind::UnexpectedEof.into() })
    }
}

impl ByteSource for Vec<u8> {
    fn len(&self) -> u64 {
        ByteSource::len(self.as_slice())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_exact_at(offset, buffer)
    }

    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        self.as_slice().read_range(offset, len)
    }
}

impl<S: ByteSource + ?Sized> ByteSource for &S {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn as_file(&self) -> Option<&FileSource> {
        (**self).as_file()
    }

    fn budget(&self) -> Option<&Budget> {
        (**self).budget()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset, buffer)
    }

    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        (**self).read_range(offset, len)
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Arc<S> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn as_file(&self) -> Option<&FileSource> {
        (**self).as_file()
    }

    fn budget(&self) -> Option<&Budget> {
        (**self).budget()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset, buffer)
    }

    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        (**self).read_range(offset, len)
    }
}

/// An open file. While it is open, its bytes can be read even if the path is deleted or replaced.
#[derive(Debug)]
pub struct FileSource {
    file: HeldFile,
    budget: Budget,
}

impl FileSource {
    /// Wraps an open regular file, with the default budget for what is read of it.
    pub fn new(file: impl Into<HeldFile>) -> Self {
        Self::within(file, None)
    }

    /// Wraps an open regular file. The memory for what is read of it is charged to this budget, or to one of its own
    /// that has the default size.
    pub fn within(file: impl Into<HeldFile>, budget: impl Into<Option<Budget>>) -> Self {
        Self { file: file.into(), budget: budget.into().unwrap_or_default() }
    }

    /// The same open file, whose memory is charged to another budget.
    #[must_use]
    pub fn charged_to(&self, budget: Option<Budget>) -> Self {
        Self::within(self.file.clone(), budget)
    }

    /// What the file system says of the file.
    ///
    /// # Errors
    /// If the file system does not tell.
    pub fn facts(&self) -> io::Result<FileFacts> {
        self.file.facts()
    }

    /// The open file, if it is open in this process.
    pub fn here(&self) -> Option<&File> {
        self.file.here()
    }
}

impl ByteSource for FileSource {
    /// The size of the file. A large file of holes counts as empty. Such a file costs nothing to make, and
    /// a reader of its claimed contents would fill memory with zeros.
    fn len(&self) -> u64 {
        let Ok(facts) = self.file.facts() else { return 0 };
        let len = facts.len;
        // Some file systems do not count blocks, or count them later. So the parts between holes are
        // checked, too. This is not asked of another process: a file as large as this counts by its blocks.
        let is_suspicious = len > MAX_HOLE_FILE_SIZE && facts.allocated.saturating_mul(HOLLOW) < len;
        let has_data = || self.file.here().is_some_and(|file| has_data(file, len, len / HOLLOW));
        if is_suspicious && !has_data() { 0 } else { len }
    }

    fn as_file(&self) -> Option<&FileSource> {
        Some(self)
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

/// Bytes derived from a file's, such as decompressed ones. They are charged to the budget while they exist.
#[derive(Debug)]
pub struct DerivedSource {
    bytes: Vec<u8>,
    budget: Option<Budget>,
    _charge: Option<Charge>,
}

impl DerivedSource {
    /// Wraps bytes derived from those of `origin`; `None` if its budget is too small for them.
    pub fn new(bytes: Vec<u8>, origin: &impl ByteSource) -> Option<Self> {
        let charge = origin.budget().map(Budget::charge);
        let has_room = charge.as_ref().is_none_or(|charge| charge.take(bytes.len() as u64));
        has_room.then(|| Self { bytes, budget: origin.budget().cloned(), _charge: charge })
    }
}

impl ByteSource for DerivedSource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bytes.read_exact_at(offset, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use nyquist_system::FileExt as _;

    #[test]
    fn a_claimed_length_takes_no_memory() {
        let bytes = [1_u8, 2, 3];
        assert_eq!(bytes.as_slice().read_range(1, 2).unwrap(), [2, 3]);
        assert!(bytes.as_slice().read_range(1, u64::MAX).is_err());
        assert!(bytes.as_slice().read_range(u64::MAX, 1).is_err());
        assert!(bytes.as_slice().read_range(0, 1 << 60).is_err());
    }

    /// Windows says nothing of holes.
    #[cfg(unix)]
    #[test]
    fn a_large_file_of_holes_counts_as_empty() {
        let path = std::env::temp_dir().join(format!("nyquist-hollow-{}", std::process::id()));
        std::fs::write(&path, [7; 8192]).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let source = FileSource::new(File::open(&path).unwrap());
        file.set_len(MAX_HOLE_FILE_SIZE).unwrap();
        assert_eq!(source.len(), MAX_HOLE_FILE_SIZE);
        file.set_len(1 << 40).unwrap();
        file.write_all_at(&[7; 8192], (1 << 40) - 8192).unwrap();
        assert_eq!(source.len(), 0);
        assert!(source.read_range(0, 1 << 39).is_err());
        // Enough bytes of this file are allocated.
        file.set_len(MAX_HOLE_FILE_SIZE + 8).unwrap();
        for megabyte in 0..40 {
            file.write_all_at(&vec![7; 1 << 20], megabyte << 20).unwrap();
        }
        assert_eq!(source.len(), MAX_HOLE_FILE_SIZE + 8);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn reading_a_file_takes_limited_memory() {
        let file = || File::open(std::env::current_exe().unwrap()).unwrap();
        let small = FileSource::within(file(), Budget::new(16));
        assert!(small.read_range(0, 16).is_ok());
        assert!(matches!(small.read_range(0, 17), Err(ObjectError::TooLarge { most: 16, .. })));
        // Whoever states no budget has the default one.
        let most = Budget::default().most();
        for source in [FileSource::new(file()), small.charged_to(None)] {
            assert!(matches!(source.check_room(most + 1), Err(ObjectError::TooLarge { .. })));
        }
    }

    #[test]
    fn a_file_that_shrinks_gives_an_error() {
        let path = std::env::temp_dir().join(format!("nyquist-shrinking-{}", std::process::id()));
        std::fs::write(&path, [7; 8192]).unwrap();
        let source = FileSource::new(File::open(&path).unwrap());
        assert_eq!(source.read_range(8000, 192).unwrap(), [7; 192]);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert!(source.read_range(8000, 192).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
