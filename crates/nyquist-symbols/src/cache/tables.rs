//! Function tables that were made of large symbol tables, kept for the next time: where each is, and who may keep one.

use super::folder::{self, TABLE};
use super::key::MAKER;
use super::{KeptAnswers, renew};
use crate::section::Source;
use nyquist_object::Elf;
use std::fs;
use std::path::{Path, PathBuf};

/// The place of one function table.
#[derive(Clone, Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    /// What the checksum of the file's head begins with.
    pub(crate) seed: u64,
}

impl KeptAnswers {
    /// The place of the table that is made of a section's symbols and has at most so many bytes; `None` where the symbols are in none
    /// of the files that the answers are of, and where the table would leave little room for all else.
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

    /// Removes a file that turned out to be damaged, so that the next one who needs it makes it anew.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether this is a file with a function table.
pub(super) fn is_one(path: &Path) -> bool {
    folder::has_extension(path, TABLE)
}
