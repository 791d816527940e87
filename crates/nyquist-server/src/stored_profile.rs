//! The profile that is served: a document in memory, or an open file that is read for each request.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use hyper::StatusCode;
use hyper::body::Bytes;

use crate::reply::ApiError;

/// The document that is served as the profile.
#[derive(Debug)]
pub struct StoredProfile {
    source: Source,
    /// The document without its counters, once it is requested; `None` if it has none, or is no such document.
    without_counters: OnceLock<Option<Bytes>>,
}

#[derive(Debug)]
enum Source {
    Memory(Bytes),
    File(StoredFile),
}

/// A file as it was when its profile was read.
#[derive(Debug)]
struct StoredFile {
    file: Mutex<File>,
    len: u64,
    modified: Option<SystemTime>,
}

impl From<Vec<u8>> for StoredProfile {
    fn from(document: Vec<u8>) -> Self {
        Self { source: Source::Memory(document.into()), without_counters: OnceLock::new() }
    }
}

impl StoredProfile {
    /// The document in an open file. It is not kept in memory. If the file is written to, requests for it fail.
    ///
    /// # Errors
    /// If the system does not say how large the file is.
    pub fn in_file(file: File) -> io::Result<Self> {
        let (len, modified) = state_of(&file)?;
        let stored = StoredFile { file: Mutex::new(file), len, modified };
        Ok(Self { source: Source::File(stored), without_counters: OnceLock::new() })
    }

    /// The document.
    pub(crate) fn read(&self) -> Result<Bytes, ApiError> {
        match &self.source {
            Source::Memory(document) => Ok(document.clone()),
            Source::File(stored) => stored.read(),
        }
    }

    /// The document without its counters. One that has none, or that is no such document, stays as it is.
    pub(crate) fn read_without_counters(&self) -> Result<Bytes, ApiError> {
        if let Some(Some(document)) = self.without_counters.get() {
            return Ok(document.clone());
        }
        let whole = self.read()?;
        let make = || nyquist_profile::firefox::without_counters(&whole).ok().flatten().map(Bytes::from);
        Ok(self.without_counters.get_or_init(make).clone().unwrap_or(whole))
    }
}

impl StoredFile {
    fn read(&self) -> Result<Bytes, ApiError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut document = Vec::new();
        let mut read = || {
            self.check(&file)?;
            file.rewind()?;
            (&*file).take(self.len).read_to_end(&mut document)?;
            // It may have been written to meanwhile.
            self.check(&file)
        };
        read().map_err(|error| {
            let text = format!("the profile's file cannot be served: {error}; load it again");
            ApiError::new(StatusCode::GONE, text)
        })?;
        Ok(document.into())
    }

    fn check(&self, file: &File) -> io::Result<()> {
        if state_of(file)? == (self.len, self.modified) {
            return Ok(());
        }
        Err(io::Error::other("it has changed since its profile was read"))
    }
}

/// The size of a file, and when it was written to, where the system says that.
fn state_of(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_until_it_changes() {
        let path = std::env::temp_dir().join(format!("nyquist-stored-{}", std::process::id()));
        std::fs::write(&path, b"{}  ").unwrap();
        let stored = StoredProfile::in_file(File::open(&path).unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(stored.read().unwrap(), b"{}  "[..]);
            assert_eq!(stored.read_without_counters().unwrap(), b"{}  "[..]);
        }
        // Another file at the same path is not this one.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"other").unwrap();
        assert_eq!(stored.read().unwrap(), b"{}  "[..]);
        let stored = StoredProfile::in_file(File::open(&path).unwrap()).unwrap();
        std::fs::write(&path, b"longer than before").unwrap();
        assert!(stored.read().is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
