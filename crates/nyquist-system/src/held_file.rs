//! Open files whose bytes are read here, or by another process.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::{FileExt as _, FileId, Ownership, allocated_bytes, changed, file_id, modified, ownership};

/// What the file system says of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its identity.
    pub id: FileId,
    /// Its length in bytes.
    pub len: u64,
    /// How much of the disk it takes, in bytes.
    pub allocated: u64,
    /// When its contents were changed last, in seconds and nanoseconds since 1970.
    pub modified: (i64, u32),
    /// When it, its rights or its owner were changed last, in seconds and nanoseconds since 1970.
    pub changed: (i64, i64),
    /// Its owner.
    pub ownership: Ownership,
}

impl FileFacts {
    /// Those of an open file.
    ///
    /// # Errors
    /// If the file system does not tell.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            id: file_id(file)?,
            len: metadata.len(),
            allocated: allocated_bytes(&metadata),
            modified: modified(&metadata),
            changed: changed(&metadata),
            ownership: ownership(file)?,
        })
    }
}

/// A file that another process holds open and reads for us, because its file system may never answer.
pub trait RemoteFile: Debug + Send + Sync {
    /// The facts at the time when it was opened.
    fn facts(&self) -> FileFacts;

    /// The current length.
    ///
    /// # Errors
    /// If the other process or the file system does not tell.
    fn current_len(&self) -> io::Result<u64>;

    /// Reads at an offset, as [`FileExt::read_at`](crate::FileExt::read_at) does.
    ///
    /// # Errors
    /// If the other process or the file system does not answer.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// An open file.
#[derive(Clone, Debug)]
pub enum HeldFile {
    /// It is open in this process.
    Here(Arc<File>),
    /// Another process holds it.
    Elsewhere(Arc<dyn RemoteFile>),
}

impl From<File> for HeldFile {
    fn from(file: File) -> Self {
        Self::Here(Arc::new(file))
    }
}

impl HeldFile {
    /// The file, if it is open in this process.
    pub fn here(&self) -> Option<&File> {
        match self {
            Self::Here(file) => Some(file),
            Self::Elsewhere(_) => None,
        }
    }

    /// What the file system says of it: now, or for a file that another process holds, when it was opened.
    ///
    /// # Errors
    /// If the file system does not tell.
    pub fn facts(&self) -> io::Result<FileFacts> {
        match self {
            Self::Here(file) => FileFacts::of(file),
            Self::Elsewhere(file) => Ok(file.facts()),
        }
    }

    /// The current length.
    ///
    /// # Errors
    /// If the file system does not tell.
    pub fn current_len(&self) -> io::Result<u64> {
        match self {
            Self::Here(file) => Ok(file.metadata()?.len()),
            Self::Elsewhere(file) => file.current_len(),
        }
    }

    /// Reads at most as many bytes as the buffer has room for.
    ///
    /// # Errors
    /// If the file system does not give them.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Here(file) => file.read_at(buffer, offset),
            Self::Elsewhere(file) => file.read_at(buffer, offset),
        }
    }

    /// Fills the buffer. A file that ends before is an error.
    ///
    /// # Errors
    /// If the file system does not give the bytes, or there are too few.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = match self {
            Self::Here(file) => return file.read_exact_at(buffer, offset),
            Self::Elsewhere(file) => file,
        };
        let mut done = 0;
        while done < buffer.len() {
            match file.read_at(&mut buffer[done..], offset.saturating_add(done as u64))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}
