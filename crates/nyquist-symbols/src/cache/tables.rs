//! Function tables that were made of large symbol tables, kept for the next time: where each is, and which are
//! kept.

use super::disk::renew;
use super::folder::{self, TABLE};
use super::kept_answers::KeptAnswers;
use super::key::MAKER;
use crate::section::Source;
use nyquist_object::Elf;
use std::fs;
use std::path::PathBuf;

/// The place of one function table.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    /// What the checksum of the file's head begins with.
    pub(crate) seed: u64,
}

impl KeptAnswers {
    /// The place of the table that is made of a section's symbols and has at most so many bytes. `None` if the
    /// symbols are in none of the answers' files, or if the table would take too large a part of the cache.
    pub(crate) fn table_file(&self, elf: &Elf<Source>, section: &str, bytes: u64) -> Option<TableFile> {
        let identity = self.key.identity_of(elf).filter(|_| self.cache.has_room_for(bytes))?;
        // Another version of the code may settle otherwise where functions end.
        let identity = format!("{MAKER}\n{section} {identity}");
        let path = self.cache.folder.join(folder::file_name(&identity, TABLE));
        Some(TableFile { path, seed: folder::seed_of(&identity) })
    }

    /// Keeps a table, unless a file of the module was written to since.
    pub(crate) fn keep_table(&self, file: &TableFile, bytes: &[u8]) {
        if self.key.still_holds() {
            self.cache.keep_file(&file.path, &[bytes], "cannot keep functions in");
        }
    }
}

impl TableFile {
    /// The file, if there is one.
    pub(crate) fn open(&self) -> Option<Source> {
        let file = crate::find::open_source(&self.path).ok()?;
        renew(&self.path);
        Some(file)
    }

    /// Removes a file that is damaged, so that the next reader that needs it makes it again.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
