//! The container of a PDB: a file of blocks with numbered streams (LLVM, "The MSF File Format").

use crate::section_contents::SharedSource;
use nyquist_object::{ByteSource, ObjectError};

/// The first bytes of a PDB.
pub(crate) const MAGIC: &[u8; 32] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";

/// The size of a missing stream.
const ABSENT: u32 = u32::MAX;

/// The streams of a file.
pub(crate) struct Msf {
    source: SharedSource,
    block_size: u32,
    streams: Vec<MsfStream>,
}

/// The length of a stream in bytes, and the numbers of its blocks.
struct MsfStream {
    len: u32,
    blocks: Vec<u32>,
}

fn malformed(reason: &'static str) -> ObjectError {
    ObjectError::Malformed { part: "PDB", reason: reason.to_owned() }
}

/// The number at an index of an array.
fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let at = index.checked_mul(4)?;
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

impl Msf {
    /// Reads the directory of streams.
    pub(crate) fn open(source: SharedSource) -> Result<Self, ObjectError> {
        let header = source.read_range(0, 56).map_err(|_| ObjectError::NotAnObject)?;
        let fields = header.strip_prefix(MAGIC).ok_or(ObjectError::NotAnObject)?;
        let [block_size, _, _, directory_len, _, map_block] =
            [0, 1, 2, 3, 4, 5].map(|at| word(fields, at).unwrap_or(0));
        if !block_size.is_power_of_two() || !(512..=1 << 16).contains(&block_size) {
            return Err(malformed("the block size is absurd"));
        }
        let block_count = u64::from(directory_len.div_ceil(block_size));
        let map = source.read_range(u64::from(map_block) * u64::from(block_size), 4 * block_count)?;
        let directory = MsfStream { len: directory_len, blocks: words(&map).collect() };
        let mut msf = Self { source, block_size, streams: vec![directory] };
        let directory = msf.read(0)?;
        msf.streams = msf.read_directory(&directory).ok_or_else(|| malformed("the directory is cut off"))?;
        Ok(msf)
    }

    /// Reads the directory: the number of streams, their lengths, and the numbers of the blocks of each.
    fn read_directory(&self, directory: &[u8]) -> Option<Vec<MsfStream>> {
        let count = word(directory, 0)? as usize;
        let (lengths, mut blocks) = directory.get(4..)?.split_at_checked(count.checked_mul(4)?)?;
        let mut streams = Vec::with_capacity(count);
        for len in words(lengths) {
            let len = if len == ABSENT { 0 } else { len };
            let own = len.div_ceil(self.block_size) as usize;
            let (own, rest) = blocks.split_at_checked(own.checked_mul(4)?)?;
            blocks = rest;
            streams.push(MsfStream { len, blocks: words(own).collect() });
        }
        Some(streams)
    }

    /// The length of a stream. 0 for a missing one.
    pub(crate) fn len(&self, stream: usize) -> u32 {
        self.streams.get(stream).map_or(0, |stream| stream.len)
    }

    /// The whole stream. Empty for a missing one.
    pub(crate) fn read(&self, stream: usize) -> Result<Vec<u8>, ObjectError> {
        self.read_range(stream, 0, self.len(stream))
    }

    /// A part of a stream. Contiguous blocks are read at once.
    pub(crate) fn read_range(&self, stream: usize, start: u32, len: u32) -> Result<Vec<u8>, ObjectError> {
        // Blocks could be used repeatedly, but a stream cannot be longer than the file.
        let end = start.checked_add(len).filter(|end| *end <= self.len(stream));
        let end = end
            .filter(|_| u64::from(len) <= self.source.len())
            .ok_or_else(|| malformed("a stream is cut off"))?;
        let mut bytes = vec![0; len as usize];
        let (mut at, mut rest) = (start, bytes.as_mut_slice());
        while at < end {
            let run = self.run(stream, at, end).ok_or_else(|| malformed("a stream is cut off"))?;
            let (part, after) = rest.split_at_mut(run.len as usize);
            let read = self.source.read_exact_at(run.offset, part);
            read.map_err(|source| ObjectError::Read { offset: run.offset, len: run.len.into(), source })?;
            (at, rest) = (at + run.len, after);
        }
        Ok(bytes)
    }

    /// The bytes of a stream from `at` on that are contiguous in the file, up to `end`.
    fn run(&self, stream: usize, at: u32, end: u32) -> Option<BlockRun> {
        let blocks = self.streams.get(stream)?.blocks.get((at / self.block_size) as usize..)?;
        let (first, within) = (*blocks.first()?, at % self.block_size);
        let together =
            (first..=u32::MAX).zip(blocks).take_while(|(expected, block)| expected == *block).count() as u32;
        let len = together.saturating_mul(self.block_size).saturating_sub(within).min(end - at);
        let offset = u64::from(first) * u64::from(self.block_size) + u64::from(within);
        (len > 0).then_some(BlockRun { offset, len })
    }
}

/// A part of the file.
struct BlockRun {
    offset: u64,
    len: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_block_number_is_cut_off() {
        let streams = vec![MsfStream { len: 1024, blocks: vec![u32::MAX, 0] }];
        let msf = Msf { source: std::sync::Arc::new(vec![0; 4096]), block_size: 512, streams };
        assert!(msf.read(0).is_err());
    }
}
