//! A file of answers of one module: a header, and then a sequence of blocks. Blocks are only added. A part
//! that is damaged or incomplete is skipped. The next writer that adds a block replaces such a file.

use super::block::{AnswerBlock, BlockWriter, MAGIC};
use super::block_file::{Magic, claimed_size, seal, unseal};
use super::cache_key::CacheKey;
use super::extent::{Extent, push_unless_covered};
use crate::AddressInfo;
use nyquist_object::RelativeAddress;
use nyquist_system::OsStrExt as _;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The magic number of every file. The digit is the version of the layout.
const FILE_MAGIC: Magic = *b"nyqans\x001";

/// The largest file that is read or extended, with about half a million answers.
pub(crate) const MAX_FILE: usize = 32 << 20;

/// A file with more blocks is rewritten, so that it has each string once.
const MAX_BLOCKS: usize = 64;

/// How many times its own size is read from a damaged file while its blocks are searched for, because bytes
/// that look like a block may not be one.
const MAX_REREAD: usize = 4;

/// The bytes of a file, and the places of its blocks.
#[derive(Debug, Default)]
pub(crate) struct AnswerFile {
    bytes: Vec<u8>,
    blocks: Vec<Range<usize>>,
    /// The path in the header.
    path: Option<PathBuf>,
    /// Whether all bytes belong to the header or to a block.
    is_whole: bool,
}

impl AnswerFile {
    /// Finds the blocks in a file's bytes. O(bytes), also for damaged ones.
    pub(crate) fn parse(bytes: Vec<u8>, seed: u64) -> Self {
        let mut file = Self { is_whole: true, ..Self::default() };
        let mut at = match read_header(&bytes) {
            Some((path, size)) => {
                file.path = Some(path);
                size
            }
            None => {
                file.is_whole = false;
                0
            }
        };
        let mut budget = bytes.len().saturating_mul(MAX_REREAD);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match AnswerBlock::read(rest, seed) {
                Some((_, size)) => {
                    file.blocks.push(at..at + size);
                    at += size;
                }
                None => {
                    file.is_whole = false;
                    let claimed = claimed_size(rest, MAGIC);
                    let Some(left) = budget.checked_sub(claimed) else { break };
                    budget = left;
                    let next = rest.get(1..).unwrap_or_default();
                    let Some(next) = next.windows(MAGIC.len()).position(|window| window == MAGIC) else {
                        break;
                    };
                    at += 1 + next;
                }
            }
        }
        file.bytes = bytes;
        file
    }

    /// Whether a block can be appended: nothing is damaged, and the file does not have too many blocks.
    pub(crate) fn can_grow(&self) -> bool {
        self.is_whole && self.blocks.len() < MAX_BLOCKS && self.path.is_some()
    }

    /// The number of its bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are answers.
    pub(crate) fn has_answers(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The path of the module, for display.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The number of answers. The same answer may occur twice.
    pub(crate) fn entries(&self) -> usize {
        self.blocks().map(|block| block.len()).sum()
    }

    /// The answers to `requested`, which are sorted.
    pub(crate) fn find(&self, requested: &[RelativeAddress]) -> Vec<Option<Arc<AddressInfo>>> {
        let mut found = vec![None; requested.len()];
        self.blocks().for_each(|block| block.fill(requested, &mut found));
        found
    }

    fn blocks(&self) -> impl Iterator<Item = AnswerBlock<'_>> {
        self.blocks.iter().filter_map(|range| AnswerBlock::of_whole(self.bytes.get(range.clone())?))
    }

    /// A whole file with these answers and `new` ones. If both are too much, it only has the `new` ones.
    pub(crate) fn rewritten(&self, new: &[(Extent, &AddressInfo)], key: &CacheKey) -> Option<Vec<u8>> {
        let known: BTreeMap<RelativeAddress, (Extent, AddressInfo)> =
            self.blocks().flat_map(|block| in_map(block.all()).collect::<Vec<_>>()).collect();
        let mut all: BTreeMap<RelativeAddress, (Extent, &AddressInfo)> =
            in_map(known.values().map(|(extent, info)| (*extent, info))).collect();
        all.extend(in_map(new.iter().copied()));
        let mut once = Vec::with_capacity(all.len());
        for (extent, info) in all.into_values() {
            push_unless_covered(&mut once, extent, info);
        }
        let whole = |answers: &[_]| Some([header(key), block(answers, key)?].concat());
        whole(&once).filter(|bytes| bytes.len() <= MAX_FILE).or_else(|| whole(new))
    }
}

/// Answers by the first address that they hold for.
fn in_map<T>(
    answers: impl Iterator<Item = (Extent, T)>,
) -> impl Iterator<Item = (RelativeAddress, (Extent, T))> {
    answers.map(|(extent, info)| (extent.start, (extent, info)))
}

/// All answers in the bytes of a cache file whose blocks have `seed`, each with its first address. Damaged
/// ones are left out. O(bytes).
#[cfg(feature = "test-hooks")]
pub(crate) fn read_answers(bytes: Vec<u8>, seed: u64) -> Vec<(RelativeAddress, AddressInfo)> {
    let file = AnswerFile::parse(bytes, seed);
    let first = |(extent, info): (Extent, AddressInfo)| (extent.start, info);
    file.blocks().flat_map(|block| block.all().map(first).collect::<Vec<_>>()).collect()
}

/// A block of answers whose addresses ascend.
pub(crate) fn block(answers: &[(Extent, &AddressInfo)], key: &CacheKey) -> Option<Vec<u8>> {
    let mut writer = BlockWriter::default();
    for (extent, info) in answers {
        writer.add(*extent, info);
    }
    writer.finish(key.seed())
}

/// The header of a file: the module's path and the whole key, for display. The checksums of blocks identify
/// their module.
fn header(key: &CacheKey) -> Vec<u8> {
    let text = [key.path.as_os_str().as_bytes(), b"\0", key.text.as_bytes()].concat();
    seal(FILE_MAGIC, 0, &text).unwrap_or_default()
}

/// The path in a header, and the header's size.
fn read_header(bytes: &[u8]) -> Option<(PathBuf, usize)> {
    let (text, size) = unseal(bytes, FILE_MAGIC, 0)?;
    let path = text.split(|byte| *byte == 0).next()?;
    Some((PathBuf::from(OsStr::from_bytes(path)), size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, Reason, SourceFrame, SymbolFiles};

    fn key() -> CacheKey {
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let source = Arc::new(nyquist_object::FileSource::new(file));
        let binary = Some(crate::OpenFile { path: "/proc/self/fd/3".into(), source });
        CacheKey::of(&SymbolFiles { module: "/bin/tool".into(), binary, ..SymbolFiles::default() }).unwrap()
    }

    fn info(name: &str) -> AddressInfo {
        let frame = SourceFrame { function: Some(name.into()), ..SourceFrame::default() };
        AddressInfo { frames: vec![frame], ..AddressInfo::unknown(Reason::NotCovered) }
    }

    fn one(address: u32) -> Extent {
        Extent::of(RelativeAddress(address))
    }

    fn found(file: &AnswerFile, address: u32) -> Option<String> {
        let info = file.find(&[RelativeAddress(address)]).pop()??;
        info.frames.first()?.function.as_deref().map(str::to_owned)
    }

    /// A file of three blocks with an answer each.
    fn three() -> (CacheKey, Vec<u8>) {
        let key = key();
        let blocks = (1_u32..=3).map(|n| block(&[(one(n), &info(&n.to_string()))], &key).unwrap());
        let bytes = [vec![header(&key)], blocks.collect()].concat().concat();
        (key, bytes)
    }

    #[test]
    fn blocks_are_found_and_their_module_is_named() {
        let (key, bytes) = three();
        let file = AnswerFile::parse(bytes, key.seed());
        assert!(file.can_grow());
        assert_eq!((file.entries(), file.path()), (3, Some(Path::new("/bin/tool"))));
        assert_eq!(found(&file, 2).as_deref(), Some("2"));
        assert_eq!(found(&file, 4), None);
    }

    #[test]
    fn what_parses_of_a_cut_file_is_kept() {
        let (key, bytes) = three();
        for len in 0..bytes.len() {
            let file = AnswerFile::parse(bytes[..len].to_vec(), key.seed());
            assert!(file.entries() < 3);
            let entries = file.entries();
            let repaired = file.rewritten(&[(one(9), &info("9"))], &key).unwrap();
            let repaired = AnswerFile::parse(repaired, key.seed());
            assert!(repaired.can_grow());
            assert_eq!(repaired.entries(), entries + 1);
        }
    }

    #[test]
    fn damage_costs_the_block_that_it_is_in_alone() {
        let (key, bytes) = three();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let file = AnswerFile::parse(damaged, key.seed());
            assert!(!file.can_grow());
            assert!(file.entries() >= 2, "byte {at}: {} left", file.entries());
        }
    }

    #[test]
    fn an_answer_is_kept_once_and_the_newest_wins() {
        let (key, bytes) = three();
        let file = AnswerFile::parse(bytes, key.seed());
        let newer = info("newer");
        let bytes = file.rewritten(&[(one(2), &newer)], &key).unwrap();
        let file = AnswerFile::parse(bytes, key.seed());
        assert_eq!((file.entries(), found(&file, 2).as_deref()), (3, Some("newer")));
    }

    #[test]
    fn a_functions_answer_replaces_those_within_it() {
        let (key, bytes) = three();
        let file = AnswerFile::parse(bytes, key.seed());
        let (whole, other) = (info("whole"), info("other"));
        let new = [(Extent { start: RelativeAddress(0), len: 3 }, &whole), (one(4), &other)];
        let file = AnswerFile::parse(file.rewritten(&new, &key).unwrap(), key.seed());
        assert_eq!(file.entries(), 3);
        let names: Vec<_> = (0..=5).map(|address| found(&file, address)).collect();
        let expected = [Some("whole"), Some("whole"), Some("whole"), Some("3"), Some("other"), None];
        assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
    }

    #[test]
    fn many_claimed_blocks_cost_at_most_the_file() {
        let mut bytes = Vec::new();
        while bytes.len() < 4 << 20 {
            bytes.extend_from_slice(&MAGIC);
            bytes.extend_from_slice(&(3_u32 << 20).to_le_bytes());
        }
        assert_eq!(AnswerFile::parse(bytes, 7).entries(), 0);
    }

    #[test]
    fn an_origin_is_its_number_for_ever() {
        let key = key();
        let known = AddressInfo { origin: Origin::DynamicSymbols, ..info("f") };
        let bytes = block(&[(one(1), &known)], &key).unwrap();
        let file = AnswerFile::parse(bytes, key.seed());
        assert_eq!(file.find(&[RelativeAddress(1)]), [Some(Arc::new(known))]);
    }
}
