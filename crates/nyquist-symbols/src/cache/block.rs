//! A block of answers, which is a part of its file ([`super::block_file`]). It has sorted addresses, their
//! answers, and each string once.
//!
//! ```text
//! payload  = answers (u32)  strings (u32)  bytes of strings (u32)
//!            first address of each answer (u32), ascending
//!            how many addresses from there on have it (u32)
//!            end of each answer in the answers' bytes (u32)
//!            end of each string in the strings' bytes (u32)
//!            the strings' bytes  the answers' bytes
//! answer   = origin  symbol  number of frames  frames
//! symbol   = name  address  size          the last two only where there is a name
//! frame    = function  file  line  column
//! ```
//!
//! An answer without bytes is the same as the one before it. Numbers in answers are LEB128. Strings are
//! numbered; a number that may be missing is stored plus one. Everything else is little-endian.

use super::block_file::{HEADER, Magic, seal, unseal};
use super::extent::Extent;
use crate::{AddressInfo, Origin, Reason, SourceFrame, Symbol};
use nyquist_object::RelativeAddress;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The magic number of every block.
pub(crate) const MAGIC: Magic = *b"\x00nyqblk\x03";

/// The origins by their number. New ones must be added at the end.
const ORIGINS: [Origin; 10] = [
    Origin::DebugInfo,
    Origin::SymbolTable,
    Origin::MiniDebugInfo,
    Origin::DynamicSymbols,
    Origin::Plt,
    Origin::UnwindInfo,
    Origin::Kallsyms,
    Origin::Unknown(Reason::NoSymbols),
    Origin::Unknown(Reason::NotCovered),
    Origin::GoTables,
];

/// A complete block with a valid checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerBlock<'a> {
    addresses: &'a [[u8; 4]],
    lens: &'a [[u8; 4]],
    answer_ends: &'a [[u8; 4]],
    string_ends: &'a [[u8; 4]],
    strings: &'a [u8],
    answers: &'a [u8],
}

/// The strings of a block that have been used.
type BlockStrings = Vec<Option<Arc<str>>>;

impl<'a> AnswerBlock<'a> {
    /// The block at the beginning of `bytes`, and its size.
    pub(crate) fn read(bytes: &'a [u8], seed: u64) -> Option<(Self, usize)> {
        let (payload, size) = unseal(bytes, MAGIC, seed)?;
        Some((Self::of_payload(payload)?, size))
    }

    /// Parses a block whose checksum was checked before.
    pub(crate) fn of_whole(bytes: &'a [u8]) -> Option<Self> {
        Self::of_payload(bytes.get(HEADER..)?)
    }

    fn of_payload(payload: &'a [u8]) -> Option<Self> {
        let (counts, rest) = payload.split_first_chunk::<12>()?;
        let count = |at: usize| usize::try_from(number(counts.as_chunks().0, at)?).ok();
        let (answers, strings, string_bytes) = (count(0)?, count(1)?, count(2)?);
        let (addresses, rest) = words(rest, answers)?;
        let (lens, rest) = words(rest, answers)?;
        let (answer_ends, rest) = words(rest, answers)?;
        let (string_ends, rest) = words(rest, strings)?;
        let (strings, answers) = rest.split_at_checked(string_bytes)?;
        // Overlapping parts could use many times the memory of the block.
        let is_in_order = ascend(answer_ends) && ascend(string_ends);
        is_in_order.then_some(Self { addresses, lens, answer_ends, string_ends, strings, answers })
    }

    /// How many answers there are.
    pub(crate) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Fills in the missing answers for `requested`, which are sorted.
    pub(crate) fn fill(&self, requested: &[RelativeAddress], found: &mut [Option<Arc<AddressInfo>>]) {
        let mut strings = BlockStrings::new();
        let mut last: Option<(usize, Arc<AddressInfo>)> = None;
        let mut behind = 0;
        for (address, found) in requested.iter().zip(found).filter(|(_, found)| found.is_none()) {
            let rest = self.addresses.get(behind..).unwrap_or_default();
            behind += rest.partition_point(|it| u32::from_le_bytes(*it) <= address.0);
            let at =
                behind.checked_sub(1).filter(|&at| self.extent(at).is_some_and(|it| it.contains(*address)));
            if let Some(place) = at.and_then(|at| self.place(at)) {
                *found = match &last {
                    Some((known, answer)) if *known == place => Some(answer.clone()),
                    _ => self.address_info(place, &mut strings).map(Arc::new),
                };
                last = found.clone().map(|answer| (place, answer));
            }
        }
    }

    /// All its answers, in order. Damaged answers are left out.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Extent, AddressInfo)> {
        let mut strings = BlockStrings::new();
        let answer = move |at| Some((self.extent(at)?, self.address_info(self.place(at)?, &mut strings)?));
        (0..self.len()).filter_map(answer)
    }

    /// The index of the answer for the address at `at`. It is its own answer or, if that has no bytes, the
    /// last answer before it that has bytes.
    fn place(&self, at: usize) -> Option<usize> {
        let end = number(self.answer_ends, at)?;
        Some(self.answer_ends.partition_point(|other| u32::from_le_bytes(*other) < end))
    }

    fn extent(&self, at: usize) -> Option<Extent> {
        Some(Extent { start: RelativeAddress(number(self.addresses, at)?), len: number(self.lens, at)? })
    }

    fn address_info(&self, at: usize, strings: &mut BlockStrings) -> Option<AddressInfo> {
        self.decode(part(self.answers, self.answer_ends, at)?, strings).ok()
    }

    fn decode(&self, answer: &[u8], strings: &mut BlockStrings) -> Result<AddressInfo, DamagedBlock> {
        let mut reader = AnswerReader(answer);
        let origin = usize::try_from(reader.number()?).ok().and_then(|at| ORIGINS.get(at));
        let origin = *origin.ok_or(DamagedBlock)?;
        let symbol = match self.string(reader.number()?, strings)? {
            Some(name) => {
                let address = reader.address()?;
                Some(Symbol { name, address, size: reader.optional()? })
            }
            None => None,
        };
        let count = reader.number()?;
        // Each frame takes at least five bytes, so a false count uses no memory.
        let most = (reader.0.len() / 5) as u64;
        let count = usize::try_from(count).ok().filter(|_| count <= most).ok_or(DamagedBlock)?;
        let mut frames = Vec::with_capacity(count);
        for _ in 0..count {
            frames.push(SourceFrame {
                function: self.string(reader.number()?, strings)?,
                file: self.string(reader.number()?, strings)?,
                declared_in: self.string(reader.number()?, strings)?,
                line: reader.optional()?,
                column: reader.optional()?,
            });
        }
        Ok(AddressInfo { symbol, frames, origin })
    }

    /// The string that is stored as `number`: its own number plus one, or 0 if there is none.
    fn string(&self, number: u64, strings: &mut BlockStrings) -> Result<Option<Arc<str>>, DamagedBlock> {
        let Some(at) = number.checked_sub(1) else { return Ok(None) };
        let at = usize::try_from(at).ok().filter(|at| *at < self.string_ends.len()).ok_or(DamagedBlock)?;
        if strings.is_empty() {
            strings.resize(self.string_ends.len(), None);
        }
        let known = strings.get_mut(at).ok_or(DamagedBlock)?;
        if known.is_none() {
            let text = part(self.strings, self.string_ends, at).ok_or(DamagedBlock)?;
            *known = Some(Arc::from(std::str::from_utf8(text).map_err(|_| DamagedBlock)?));
        }
        Ok(known.clone())
    }
}

/// The first `count` words of four bytes, and the rest.
fn words(bytes: &[u8], count: usize) -> Option<(&[[u8; 4]], &[u8])> {
    let (words, rest) = bytes.split_at_checked(count.checked_mul(4)?)?;
    Some((words.as_chunks().0, rest))
}

fn ascend(words: &[[u8; 4]]) -> bool {
    words.is_sorted_by_key(|word| u32::from_le_bytes(*word))
}

fn number(words: &[[u8; 4]], at: usize) -> Option<u32> {
    words.get(at).map(|word| u32::from_le_bytes(*word))
}

/// The part of `bytes` that the ends before and at `at` delimit.
fn part<'a>(bytes: &'a [u8], ends: &[[u8; 4]], at: usize) -> Option<&'a [u8]> {
    let start = at.checked_sub(1).map_or(Some(0), |before| number(ends, before))?;
    bytes.get(start as usize..number(ends, at)? as usize)
}

/// An answer with invalid bytes, although their checksum is valid.
struct DamagedBlock;

struct AnswerReader<'a>(&'a [u8]);

impl AnswerReader<'_> {
    #[inline]
    fn number(&mut self) -> Result<u64, DamagedBlock> {
        match self.0.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.0 = rest;
                Ok(byte.into())
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, DamagedBlock> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(DamagedBlock)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DamagedBlock)
    }

    fn address(&mut self) -> Result<RelativeAddress, DamagedBlock> {
        u32::try_from(self.number()?).map(RelativeAddress).map_err(|_| DamagedBlock)
    }

    /// A number that is stored plus one, or 0 if it is missing.
    fn optional(&mut self) -> Result<Option<u32>, DamagedBlock> {
        let value = self.number()?.checked_sub(1).map(u32::try_from);
        value.transpose().map_err(|_| DamagedBlock)
    }
}

/// Puts a block together.
#[derive(Debug, Default)]
pub(crate) struct BlockWriter<'a> {
    addresses: Vec<u8>,
    lens: Vec<u8>,
    answer_ends: Vec<u8>,
    string_ends: Vec<u8>,
    strings: Vec<u8>,
    answers: Vec<u8>,
    numbers: FxHashMap<&'a str, u64>,
    /// The numbers of strings by their addresses in memory, because most answers share their strings with
    /// others.
    places: FxHashMap<*const u8, u64>,
    last: Option<&'a AddressInfo>,
}

impl<'a> BlockWriter<'a> {
    /// Adds an answer. The addresses must ascend.
    pub(crate) fn add(&mut self, extent: Extent, info: &'a AddressInfo) {
        let Some(origin) = ORIGINS.iter().position(|origin| *origin == info.origin) else { return };
        if self.last != Some(info) {
            self.write_address_info(origin, info);
        }
        self.last = Some(info);
        self.addresses.extend_from_slice(&extent.start.0.to_le_bytes());
        self.lens.extend_from_slice(&extent.len.to_le_bytes());
        self.answer_ends.extend_from_slice(&(self.answers.len() as u32).to_le_bytes());
    }

    fn write_address_info(&mut self, origin: usize, info: &'a AddressInfo) {
        self.number(origin as u64);
        let name = info.symbol.as_ref().map(|symbol| &symbol.name);
        self.string(name);
        if let Some(symbol) = &info.symbol {
            self.number(u64::from(symbol.address.0));
            self.optional(symbol.size);
        }
        self.number(info.frames.len() as u64);
        for frame in &info.frames {
            self.string(frame.function.as_ref());
            self.string(frame.file.as_ref());
            self.string(frame.declared_in.as_ref());
            self.optional(frame.line);
            self.optional(frame.column);
        }
    }

    fn string(&mut self, text: Option<&'a Arc<str>>) {
        let Some(text) = text else { return self.number(0) };
        let number = match self.places.get(&text.as_ptr()) {
            Some(number) if !text.is_empty() => *number,
            _ => self.string_number(text),
        };
        self.number(number);
    }

    fn string_number(&mut self, text: &'a Arc<str>) -> u64 {
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.strings.extend_from_slice(text.as_bytes());
            self.string_ends.extend_from_slice(&(self.strings.len() as u32).to_le_bytes());
        }
        self.places.insert(text.as_ptr(), number);
        number
    }

    fn optional(&mut self, value: Option<u32>) {
        self.number(value.map_or(0, |value| u64::from(value) + 1));
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.answers.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.answers.push(value as u8);
    }

    /// The block's bytes. `None` if it would be too long for its own numbers.
    pub(crate) fn finish(self, seed: u64) -> Option<Vec<u8>> {
        let answers = [&self.addresses, &self.lens, &self.answer_ends];
        let parts = answers.into_iter().chain([&self.string_ends, &self.strings, &self.answers]);
        let mut payload = Vec::with_capacity(12 + parts.clone().map(Vec::len).sum::<usize>());
        for count in [self.addresses.len() / 4, self.string_ends.len() / 4, self.strings.len()] {
            payload.extend_from_slice(&u32::try_from(count).ok()?.to_le_bytes());
        }
        for part in parts {
            payload.extend_from_slice(part);
        }
        sealed_block(&payload, seed)
    }
}

/// A block with this payload, valid or not, whose checksum `read_answers` accepts. `None` if it is
/// longer than a block can be. It is for tests of the output of a faulty writer.
pub(crate) fn sealed_block(payload: &[u8], seed: u64) -> Option<Vec<u8>> {
    seal(MAGIC, seed, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infos() -> Vec<(Extent, AddressInfo)> {
        let name: Arc<str> = "core::fmt::write".into();
        let frame = |line| SourceFrame {
            function: Some(name.clone()),
            file: Some("/src/ü.rs".into()),
            declared_in: (line == 3).then(|| "/src/other.rs".into()),
            line: Some(line),
            column: Some(u32::MAX),
        };
        let symbol = Some(Symbol { name: name.clone(), address: RelativeAddress(0x1000), size: None });
        let known = AddressInfo {
            symbol,
            frames: vec![frame(3), SourceFrame::default(), frame(0)],
            origin: Origin::DebugInfo,
        };
        let symbol = Symbol { name: "".into(), address: RelativeAddress(u32::MAX), size: Some(u32::MAX) };
        let of_table =
            AddressInfo { symbol: Some(symbol), frames: vec![SourceFrame::default()], origin: Origin::Plt };
        vec![
            (Extent::of(RelativeAddress(0)), AddressInfo::unknown(Reason::NotCovered)),
            (Extent { start: RelativeAddress(0x1008), len: 8 }, known),
            (Extent::of(RelativeAddress(u32::MAX)), of_table),
        ]
    }

    fn written(infos: &[(Extent, AddressInfo)], seed: u64) -> Vec<u8> {
        let mut writer = BlockWriter::default();
        for (extent, info) in infos {
            writer.add(*extent, info);
        }
        writer.finish(seed).unwrap()
    }

    #[test]
    fn a_block_reads_back() {
        let (infos, bytes) = (infos(), written(&infos(), 5));
        let (block, size) = AnswerBlock::read(&bytes, 5).unwrap();
        assert_eq!((size, block.len()), (bytes.len(), 3));
        assert_eq!(block.all().collect::<Vec<_>>(), infos);
        let requested = [1, 0x1007, 0x1008, 0x100f, 0x1010, u32::MAX].map(RelativeAddress);
        let mut found = vec![None; requested.len()];
        block.fill(&requested, &mut found);
        let answer = |at: usize| Some(Arc::new(infos[at].1.clone()));
        assert_eq!(found, [None, None, answer(1), answer(1), None, answer(2)]);
    }

    #[test]
    fn addresses_of_one_answer_share_it() {
        let known = &infos()[1].1;
        let infos: Vec<_> = (1..=4).map(|at| (Extent::of(RelativeAddress(at)), known.clone())).collect();
        let (bytes, single) = (written(&infos, 5), written(&infos[..1], 5));
        assert_eq!(bytes.len(), single.len() + 3 * 12, "an address, a length and an end each");
        let (block, _) = AnswerBlock::read(&bytes, 5).unwrap();
        assert_eq!(block.all().collect::<Vec<_>>(), infos);
        let mut found = vec![None; 2];
        block.fill(&[RelativeAddress(2), RelativeAddress(4)], &mut found);
        let found: Vec<Arc<AddressInfo>> = found.into_iter().flatten().collect();
        assert!(Arc::ptr_eq(&found[0], &found[1]) && *found[0] == *known);
    }

    #[test]
    fn a_foreign_cut_or_damaged_block_is_none() {
        let bytes = written(&infos(), 5);
        assert!(AnswerBlock::read(&bytes, 6).is_none());
        for len in 0..bytes.len() {
            assert!(AnswerBlock::read(&bytes[..len], 5).is_none(), "{len}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(AnswerBlock::read(&damaged, 5).is_none(), "{at}");
        }
    }

    /// A payload that a faulty writer has sealed is checked like any other input.
    #[test]
    fn no_sealed_payload_panics_or_takes_much_memory() {
        let payload = written(&infos(), 5).split_off(HEADER);
        for at in 0..payload.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = payload.clone();
                damaged[at] = value;
                let block = sealed_block(&damaged, 5).unwrap();
                let frames = |(block, _): (AnswerBlock<'_>, usize)| -> usize {
                    block.all().map(|(_, info)| info.frames.len()).sum()
                };
                assert!(AnswerBlock::read(&block, 5).map_or(0, frames) <= damaged.len() / 4);
            }
        }
    }

    #[test]
    fn what_was_cancelled_is_not_kept() {
        let cancelled = [(Extent::of(RelativeAddress(1)), AddressInfo::unknown(Reason::Cancelled))];
        assert_eq!(AnswerBlock::read(&written(&cancelled, 1), 1).unwrap().0.len(), 0);
    }
}
