//! The cached answers of one module, to which several processes can add more.

use super::answer_cache::AnswerCache;
use super::cache_key::CacheKey;
use super::disk::{read_open, renew, replace};
use super::extent::Extent;
use super::file::{AnswerFile, MAX_FILE, block};
use crate::{AddressInfo, SymbolFiles};
use nyquist_object::RelativeAddress;
use nyquist_system::{
    FileId, REPLACES_OPEN_FILES, create_private_folder, file_id, open_regular, open_regular_unlinked,
    private_options,
};
use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long an addition waits for another process that adds to the same file. Adding takes milliseconds.
const LOCK_TRIES: u32 = 300;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

impl AnswerCache {
    /// The cached answers for the files that were found.
    pub(crate) fn open(self: &Arc<Self>, found: &SymbolFiles) -> Option<CachedAnswers> {
        let key = CacheKey::of(found)?;
        let path = self.folder.join(key.file_name());
        let open = open_regular(&path).ok();
        let read = open.as_ref().and_then(|open| Some((read_open(open).ok()?, file_id(open).ok()?)));
        let (bytes, read_from) = read.unzip();
        let file = AnswerFile::parse(bytes.unwrap_or_default(), key.seed());
        if file.len() > 0 {
            renew(&path);
        }
        Some(CachedAnswers { cache: self.clone(), path, key, file, read_from })
    }
}

/// The cached answers of one module, and the way to store more.
#[derive(Debug)]
pub(crate) struct CachedAnswers {
    pub(super) cache: Arc<AnswerCache>,
    path: PathBuf,
    pub(super) key: CacheKey,
    file: AnswerFile,
    /// Which file that was; `None` where there was none.
    read_from: Option<FileId>,
}

impl CachedAnswers {
    /// The cache that they are in.
    pub(crate) fn cache(&self) -> &AnswerCache {
        &self.cache
    }

    /// Whether there were any answers when the file was opened.
    pub(crate) fn is_known(&self) -> bool {
        self.file.has_answers()
    }

    /// The answers to `requested`, which are sorted.
    pub(crate) fn find(&self, requested: &[RelativeAddress]) -> Vec<Option<Arc<AddressInfo>>> {
        self.file.find(requested)
    }

    /// Stores answers, whose addresses ascend, unless the module's files were modified meanwhile.
    pub(crate) fn keep(&self, answers: &[(Extent, &AddressInfo)]) {
        if answers.is_empty() || !self.key.still_holds() {
            return;
        }
        match self.add(answers) {
            Ok(bytes) => self.cache.written(bytes),
            Err(error) => self.cache.note("cannot keep names in", &self.path, &error),
        }
    }

    fn add(&self, answers: &[(Extent, &AddressInfo)]) -> io::Result<usize> {
        create_private_folder(&self.cache.folder)?;
        let mut file = self.lock()?;
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let len = file.metadata()?.len();
        // Files only grow, or others come in their place.
        let is_as_read = self.read_from == Some(file_id(&file)?) && len == self.file.len() as u64;
        let anew;
        let known = if is_as_read {
            &self.file
        } else {
            anew = AnswerFile::parse(read_open(&file)?, self.key.seed());
            &anew
        };
        let new = if known.can_grow() { block(answers, &self.key) } else { None };
        match new.filter(|new| known.len() + new.len() <= MAX_FILE) {
            Some(block) => {
                let end = file.seek(io::SeekFrom::End(0))?;
                // Readers would skip an incomplete block, but it is removed anyway.
                file.write_all(&block).inspect_err(|_| drop(file.set_len(end)))?;
                Ok(block.len())
            }
            None => {
                let bytes = known.rewritten(answers, &self.key).ok_or_else(too_large)?;
                // This removes the locked file. Where that must be closed, what another process adds just now is
                // lost, and looked up again.
                let locked = REPLACES_OPEN_FILES.then_some(file);
                replace(&self.path, &[&bytes])?;
                drop(locked);
                Ok(bytes.len())
            }
        }
    }

    /// Opens and locks the file, which is created if it does not exist. Another process may replace it
    /// meanwhile.
    fn lock(&self) -> io::Result<File> {
        for _ in 0..LOCK_TRIES {
            let file = private_options().read(true).append(true).create(true).open(&self.path)?;
            match file.try_lock() {
                Ok(()) => {
                    let named = open_regular_unlinked(&self.path).and_then(|named| file_id(&named));
                    if named.is_ok_and(|named| file_id(&file).is_ok_and(|locked| named == locked)) {
                        return Ok(file);
                    }
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has it locked"))
    }
}
