//! Reading an object file's bytes in a way that survives the file changing underneath.

use crate::ObjectError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Random access to the bytes of an object file.
///
/// Files are read by `pread` and not mapped: a file that is truncated while it is mapped (a rebuild) ends the
/// process that touches the missing page.
pub trait ByteSource {
    /// The number of bytes that there are now.
    fn len(&self) -> u64;

    /// Whether there is not a single byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `offset` on. Bytes that are not there are an error.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The file that all these bytes are, where they are one.
    fn as_file(&self) -> Option<&FileSource> {
        None
    }

    /// The `len` bytes from `offset` on. Memory is taken only for bytes that are really there.
    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        let failed = |source| ObjectError::Read { offset, len, source };
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

    /// As the provided one, without zeros in between.
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

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset, buffer)
    }

    fn read_range(&self, offset: u64, len: u64) -> Result<Vec<u8>, ObjectError> {
        (**self).read_range(offset, len)
    }
}

/// An open file. Holding it keeps the bytes reachable when the path is deleted or replaced.
#[derive(Debug)]
pub struct FileSource {
    file: File,
}

impl FileSource {
    /// Takes an open regular file.
    pub fn new(file: File) -> Self {
        Self { file }
    }

    /// The open file, for its metadata.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl ByteSource for FileSource {
    fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    fn as_file(&self) -> Option<&FileSource> {
        Some(self)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_length_takes_no_memory() {
        let bytes = [1_u8, 2, 3];
        assert_eq!(bytes.as_slice().read_range(1, 2).unwrap(), [2, 3]);
        assert!(bytes.as_slice().read_range(1, u64::MAX).is_err());
        assert!(bytes.as_slice().read_range(u64::MAX, 1).is_err());
        assert!(bytes.as_slice().read_range(0, 1 << 60).is_err());
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
