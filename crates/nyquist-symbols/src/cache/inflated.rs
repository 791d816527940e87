//! Caches inflated sections of debug info that are compressed in their file. A compressed section can only be
//! read as a whole, but a few addresses need little of it.
//!
//! ```text
//! file    = head, which is the list  sections
//! list    = for each section: length of its name (u8), its name, its length (u64)
//! ```
//!
//! The head is as in all files of a cache (`block_file.rs`). The sections follow each other, up to the end of
//! the file. Their bytes have no checksum, because a reader of a few bytes would have to read all of them. A
//! file gets its name when it is completely written, and is never modified after that.

use super::answer_cache::AnswerCache;
use super::block_file::{FileHead, Magic, seal};
use super::cache_key::{FileVersion, identity};
use super::disk::renew;
use super::folder::{self, INFLATED};
use crate::find::open_source;
use crate::section_contents::{SectionContents, SharedSource};
use nyquist_object::{ByteSource, Elf, FileSource};
use nyquist_resources::Budget;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The magic number of every file.
const MAGIC: Magic = *b"\x00nyqsec\x01";

/// The longest list that is accepted.
const MAX_LIST: u32 = 4 << 10;

/// The inflated sections of one file with debug info, if they are cached, and the way to store them.
pub(crate) struct InflatedSections<'a> {
    cache: &'a AnswerCache,
    /// The file that they are from, with its state when it was opened.
    file: &'a FileSource,
    version: FileVersion,
    path: PathBuf,
    seed: u64,
    cached: Option<(SharedSource, SectionRanges)>,
}

/// Where each section is, by its name.
type SectionRanges = Vec<(String, Range<u64>)>;

impl AnswerCache {
    /// The inflated sections of a file with debug info. `None` if it has no compressed sections, or is not a
    /// file.
    pub(crate) fn inflated<'a>(&'a self, elf: &'a Elf<SharedSource>) -> Option<InflatedSections<'a>> {
        InflatedSections::of(self, elf)
    }
}

impl<'a> InflatedSections<'a> {
    fn of(cache: &'a AnswerCache, elf: &'a Elf<SharedSource>) -> Option<Self> {
        let is_compressed = elf.sections().iter().any(|section| elf.is_compressed(section));
        let file = elf.source().as_file().filter(|_| is_compressed)?;
        let version = FileVersion::of(file).ok()?;
        let identity = identity(file, elf.build_id(), version)?;
        let seed = folder::seed_of(&identity);
        let path = cache.folder.join(folder::file_name(&identity, INFLATED));
        let cached = open(&path, seed, file.budget());
        if cached.is_some() {
            renew(&path);
        }
        Some(Self { cache, file, version, path, seed, cached })
    }

    /// The section of that name, if it is kept.
    pub(crate) fn section(&self, name: &str) -> Option<SectionContents> {
        let (source, list) = self.cached.as_ref()?;
        let (_, range) = list.iter().find(|(known, _)| known == name)?;
        Some(SectionContents::at(source, range.start, range.end - range.start))
    }

    /// Stores sections, each with its name, unless they are already cached, the file was modified since, or
    /// they would take too large a part of the cache.
    pub(crate) fn keep(&self, sections: &[(&str, &[u8])]) {
        let size: u64 = sections.iter().map(|(_, bytes)| ByteSource::len(*bytes)).sum();
        let is_unchanged = || FileVersion::of(self.file).is_ok_and(|now| now == self.version);
        if self.cached.is_some() || size == 0 || !self.cache.has_room_for(size) || !is_unchanged() {
            return;
        }
        let head = head(sections, self.seed);
        let parts: Vec<&[u8]> =
            std::iter::once(head.as_slice()).chain(sections.iter().map(|(_, bytes)| *bytes)).collect();
        self.cache.keep_file(&self.path, &parts, "cannot keep debug info in");
    }
}

fn open(path: &Path, seed: u64, budget: Option<&Budget>) -> Option<(SharedSource, SectionRanges)> {
    let source = open_source(path, budget).ok()?;
    let list = read_list(&*source, seed)?;
    Some((source, list))
}

/// The bytes before the sections.
fn head(sections: &[(&str, &[u8])], seed: u64) -> Vec<u8> {
    let mut list = Vec::new();
    for (name, bytes) in sections {
        list.push(name.len() as u8);
        list.extend(name.as_bytes());
        list.extend(ByteSource::len(*bytes).to_le_bytes());
    }
    sealed_list(&list, seed)
}

/// A file up to its sections with this list, valid or not, whose checksum `read_inflated` accepts.
pub(crate) fn sealed_list(list: &[u8], seed: u64) -> Vec<u8> {
    seal(MAGIC, seed, list).unwrap_or_default()
}

/// The places of the sections. `None` if the list is damaged.
fn read_list(source: &impl ByteSource, seed: u64) -> Option<SectionRanges> {
    let head = FileHead::read(source, MAGIC, seed, MAX_LIST)?;
    let (mut list, mut rest) = (Vec::new(), head.contents.as_slice());
    let mut start = head.end();
    while let Some((&name_len, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(name_len.into())?;
        let (section_len, after) = after.split_first_chunk::<8>()?;
        let end = start.checked_add(u64::from_le_bytes(*section_len))?;
        list.push((str::from_utf8(name).ok()?.to_owned(), start..end));
        (start, rest) = (end, after);
    }
    (start == source.len()).then_some(list)
}

/// The sections in the bytes of a cache file whose list's checksum was made with `seed`, by their names.
/// Empty if the list is damaged. O(sections).
#[cfg(any(test, feature = "test-hooks"))]
pub(crate) fn read_inflated(bytes: &[u8], seed: u64) -> Vec<(String, Range<u64>)> {
    read_list(&bytes, seed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 9;

    fn file() -> Vec<u8> {
        let sections: [(&str, &[u8]); 3] = [("info", &[1; 300]), ("str", &[]), ("abbrev", &[2; 5])];
        [head(&sections, SEED), vec![1; 300], vec![2; 5]].concat()
    }

    #[test]
    fn sections_are_found_where_they_were_written() {
        let bytes = file();
        let read = read_inflated(&bytes, SEED);
        let named: Vec<_> = read
            .iter()
            .map(|(name, range)| (name.as_str(), &bytes[range.start as usize..range.end as usize]))
            .collect();
        assert_eq!(named, [("info", &[1; 300][..]), ("str", &[][..]), ("abbrev", &[2; 5][..])]);
    }

    #[test]
    fn a_foreign_or_partial_file_holds_nothing() {
        let bytes = file();
        assert!(read_inflated(&bytes, SEED + 1).is_empty());
        for len in 0..bytes.len() {
            assert!(read_inflated(&bytes[..len], SEED).is_empty(), "{len}");
        }
        assert!(read_inflated(&[bytes.as_slice(), &[0]].concat(), SEED).is_empty());
        for damaged in 0..bytes.len() - 305 {
            let mut other = bytes.clone();
            other[damaged] ^= 0x10;
            assert!(read_inflated(&other, SEED).is_empty(), "{damaged}");
        }
    }
}
