//! Cached function tables of large symbol tables: the place of each, and which are stored.

use super::cache_key::MAKER;
use super::cached_answers::CachedAnswers;
use super::disk::renew;
use super::folder::{self, TABLE};
use crate::section_contents::SharedSource;
use nyquist_object::Elf;
use std::fs;
use std::path::PathBuf;

/// The place of one function table.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    /// The seed of the checksum of the file's head.
    pub(crate) seed: u64,
}

impl CachedAnswers {
    /// The place of the table of a section's symbols, which has at most `bytes` bytes. `None` if the symbols
    /// are in none of the answers' files, or if the table would take too large a part of the cache.
    pub(crate) fn table_file(&self, elf: &Elf<SharedSource>, section: &str, bytes: u64) -> Option<TableFile> {
        let identity = self.key.identity_of(elf).filter(|_| self.cache.has_room_for(bytes))?;
        // Another version of the code may find other ends of functions.
        let identity = format!("{MAKER}\n{section} {identity}");
        let path = self.cache.folder.join(folder::file_name(&identity, TABLE));
        Some(TableFile { path, seed: folder::seed_of(&identity) })
    }

    /// Stores a table, unless a file of the module was modified since.
    pub(crate) fn keep_table(&self, file: &TableFile, bytes: &[u8]) {
        if self.key.still_holds() {
            self.cache.keep_file(&file.path, &[bytes], "cannot keep functions in");
        }
    }
}

impl TableFile {
    /// The file, if there is one.
    pub(crate) fn open(&self) -> Option<SharedSource> {
        let file = crate::find::open_source(&self.path, None).ok()?;
        renew(&self.path);
        Some(file)
    }

    /// Removes a damaged file, so that the next reader that needs it makes it again.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
