//! The description of the whole program in a PDB: its identity, its sections, and the object files that it
//! was linked from. LLVM describes it in "The PDB Info Stream" and "The PDB DBI Stream".

use super::msf::Msf;
use nyquist_object::{Cursor, DebugId, ObjectError};
use std::ops::Range;

/// The numbers of streams with fixed numbers.
const INFO_STREAM: usize = 1;
const DBI_STREAM: usize = 3;

/// The places in the DBI stream's last part with the numbers of the streams of section headers and of moved
/// code.
const OMAP_TO_SOURCE: usize = 3;
const OMAP_FROM_SOURCE: usize = 4;
const SECTION_HEADERS: usize = 5;
const ORIGINAL_SECTION_HEADERS: usize = 10;

/// The number of a missing stream.
const NO_STREAM: u16 = u16::MAX;

/// The most object files that are accepted. The largest programs have some ten thousand.
const MAX_MODULES: usize = 1 << 20;

/// The versions of the table of contributions: entries of 28 and of 32 bytes.
const CONTRIBUTIONS_60: u32 = 0xeffe_0000 + 19_970_605;
const CONTRIBUTIONS_2: u32 = 0xeffe_0000 + 20_140_516;

/// An object file that the program was linked from.
#[derive(Clone, Copy, Debug)]
pub(super) struct PdbModule {
    /// The stream of its symbols and lines.
    pub(super) stream: usize,
    pub(super) symbols_len: u32,
    /// How many bytes of lines in an old format precede those in the supported format.
    pub(super) old_lines_len: u32,
    pub(super) lines_len: u32,
}

impl PdbModule {
    /// The part of its stream with lines.
    pub(super) fn lines<'a>(&self, stream: &'a [u8]) -> &'a [u8] {
        let start = (self.symbols_len as usize).saturating_add(self.old_lines_len as usize);
        let lines = stream.get(start..).unwrap_or_default();
        lines.get(..self.lines_len as usize).unwrap_or(lines)
    }
}

/// A piece of code and the object file that it is from.
#[derive(Clone, Copy, Debug)]
struct SectionContribution {
    start: u32,
    end: u32,
    module: u16,
}

/// Code that was moved after linking: each address, and the old or new address of the code from there on.
#[derive(Clone, Debug, Default)]
struct AddressMap(Vec<[u32; 2]>);

/// The program as a whole.
#[derive(Debug)]
pub(crate) struct PdbProgram {
    pub(super) modules: Vec<PdbModule>,
    /// By address.
    contributions: Vec<SectionContribution>,
    /// The addresses of the sections, in the numbering of symbols.
    sections: Vec<Range<u32>>,
    to_source: AddressMap,
    from_source: AddressMap,
    /// The stream of public symbols.
    pub(super) symbol_stream: Option<usize>,
    /// The stream of strings.
    pub(super) names_stream: Option<usize>,
}

fn malformed(reason: &'static str) -> ObjectError {
    ObjectError::Malformed { part: "PDB", reason: reason.to_owned() }
}

/// The id of a PDB, from its first streams alone.
pub(crate) fn debug_id(msf: &Msf) -> Result<DebugId, ObjectError> {
    let info = msf.read_range(INFO_STREAM, 0, 28)?;
    let (age, guid) = (Cursor::new(&info, 8, true).u32(), info.get(12..).and_then(|rest| rest.first_chunk()));
    let (age, guid) = age.zip(guid).ok_or_else(|| malformed("no identity"))?;
    // The age here is also increased when other tools write to the PDB. The image has the age of the DBI
    // stream.
    let dbi = msf.read_range(DBI_STREAM, 8, 4).ok();
    let dbi_age = dbi.and_then(|bytes| Cursor::new(&bytes, 0, true).u32()).filter(|age| *age != 0);
    Ok(DebugId::from_guid(*guid, dbi_age.unwrap_or(age)))
}

/// The parts of the DBI stream, by their lengths, and the streams that its header names.
struct DbiHeader {
    symbol_stream: u16,
    modules: Range<usize>,
    contributions: Range<usize>,
    streams: Range<usize>,
}

impl DbiHeader {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, 20, true);
        let symbol_stream = cursor.u16()?;
        cursor.seek(24);
        let mut lengths = [0_usize; 8];
        for length in &mut lengths {
            *length = cursor.u32()? as usize;
        }
        // The middle one is no length, and the last two are in reverse order.
        let [modules, contributions, map, sources, servers, _, streams, edits] = lengths;
        let mut at = 64_usize;
        let mut part = |len: usize| {
            let start = at;
            at = at.checked_add(len)?;
            Some(start..at)
        };
        let (modules, contributions) = (part(modules)?, part(contributions)?);
        for len in [map, sources, servers, edits] {
            part(len)?;
        }
        Some(Self { symbol_stream, modules, contributions, streams: part(streams)? })
    }
}

impl PdbProgram {
    pub(super) fn read(msf: &Msf) -> Result<Self, ObjectError> {
        let dbi = msf.read(DBI_STREAM)?;
        let header = DbiHeader::parse(&dbi).ok_or_else(|| malformed("the DBI stream is cut off"))?;
        let streams = dbi.get(header.streams).unwrap_or_default();
        let stream = |number: usize| {
            let number = streams.get(2 * number..)?.first_chunk().copied().map(u16::from_le_bytes)?;
            (number != NO_STREAM).then_some(usize::from(number))
        };
        let (to_source, from_source) =
            (moved(msf, stream(OMAP_TO_SOURCE)), moved(msf, stream(OMAP_FROM_SOURCE)));
        let original = stream(ORIGINAL_SECTION_HEADERS).filter(|_| !to_source.0.is_empty());
        let headers = original.or(stream(SECTION_HEADERS)).ok_or_else(|| malformed("no section headers"))?;
        let sections = sections(&msf.read(headers)?);
        let contributions = contributions(dbi.get(header.contributions).unwrap_or_default(), &sections);
        Ok(Self {
            modules: modules(dbi.get(header.modules).unwrap_or_default()),
            contributions,
            sections,
            to_source,
            from_source,
            symbol_stream: Some(header.symbol_stream).filter(|stream| *stream != NO_STREAM).map(usize::from),
            names_stream: names_stream(msf),
        })
    }

    /// The address of a place that is given by its section, counted from 1, and the offset in it.
    pub(super) fn address(&self, section: u16, offset: u32) -> Option<u32> {
        let section = self.sections.get(usize::from(section).checked_sub(1)?)?;
        section.start.checked_add(offset).filter(|address| *address <= section.end)
    }

    /// The ranges of the sections.
    pub(super) fn sections(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.sections.iter().cloned()
    }

    /// The address that the code had when the debug info was written.
    pub(super) fn source_address(&self, address: u32) -> Option<u32> {
        self.to_source.map(address)
    }

    /// The address that the code has in the image.
    pub(super) fn image_address(&self, address: u32) -> Option<u32> {
        self.from_source.map(address)
    }

    /// The number of the object file of the code at an address in the debug info's terms.
    pub(super) fn module_of(&self, address: u32) -> Option<u16> {
        let after = self.contributions.partition_point(|contribution| contribution.start <= address);
        let found = self.contributions.get(after.checked_sub(1)?)?;
        (address < found.end).then_some(found.module)
    }
}

impl AddressMap {
    fn map(&self, address: u32) -> Option<u32> {
        if self.0.is_empty() {
            return Some(address);
        }
        let after = self.0.partition_point(|[from, _]| *from <= address);
        let [from, to] = *self.0.get(after.checked_sub(1)?)?;
        (to != 0).then(|| to.checked_add(address - from)).flatten()
    }
}

fn moved(msf: &Msf, stream: Option<usize>) -> AddressMap {
    let bytes = stream.and_then(|stream| msf.read(stream).ok()).unwrap_or_default();
    let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut moved = words.as_chunks().0.to_vec();
    moved.sort_unstable();
    AddressMap(moved)
}

/// The addresses of the sections, by the headers as they are in an image.
fn sections(headers: &[u8]) -> Vec<Range<u32>> {
    let section = |header: &[u8; 40]| {
        let mut cursor = Cursor::new(header, 8, true);
        let (size, address) = (cursor.u32().unwrap_or(0), cursor.u32().unwrap_or(0));
        address..address.saturating_add(size)
    };
    headers.as_chunks().0.iter().map(section).collect()
}

fn modules(mut bytes: &[u8]) -> Vec<PdbModule> {
    let mut modules = Vec::new();
    while modules.len() < MAX_MODULES
        && let Some((module, len)) = module(bytes)
    {
        modules.push(module);
        bytes = bytes.get(len..).unwrap_or_default();
    }
    modules
}

/// An entry of the list of modules, and its length.
fn module(bytes: &[u8]) -> Option<(PdbModule, usize)> {
    let mut cursor = Cursor::new(bytes, 34, true);
    let stream = cursor.u16()?;
    let (symbols_len, old_lines_len, lines_len) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    cursor.seek(64);
    cursor.string()?;
    cursor.string()?;
    // A missing stream has an unused number.
    let module = PdbModule { stream: stream.into(), symbols_len, old_lines_len, lines_len };
    Some((module, cursor.position().next_multiple_of(4)))
}

/// The names of the modules, in the order of [`PdbProgram::modules`].
pub(super) fn module_names(msf: &Msf) -> Vec<Vec<u8>> {
    let dbi = msf.read(DBI_STREAM).unwrap_or_default();
    let range = DbiHeader::parse(&dbi).map(|header| header.modules).unwrap_or_default();
    let mut bytes = dbi.get(range).unwrap_or_default();
    let mut names = Vec::new();
    while names.len() < MAX_MODULES
        && let Some((_, len)) = module(bytes)
    {
        names.push(Cursor::new(bytes, 64, true).string().unwrap_or_default().to_vec());
        bytes = bytes.get(len..).unwrap_or_default();
    }
    names
}

fn contributions(bytes: &[u8], sections: &[Range<u32>]) -> Vec<SectionContribution> {
    let size = match Cursor::new(bytes, 0, true).u32() {
        Some(CONTRIBUTIONS_60) => 28,
        Some(CONTRIBUTIONS_2) => 32,
        _ => return Vec::new(),
    };
    let read = |entry: &[u8]| {
        let mut cursor = Cursor::new(entry, 0, true);
        let section = usize::from(cursor.u16()?).checked_sub(1)?;
        cursor.seek(4);
        let (offset, size) = (cursor.u32()?, cursor.u32()?);
        cursor.seek(16);
        let module = cursor.u16()?;
        let start = sections.get(section)?.start.checked_add(offset)?;
        Some(SectionContribution { start, end: start.saturating_add(size), module })
    };
    let mut contributions: Vec<_> =
        bytes.get(4..).unwrap_or_default().chunks_exact(size).filter_map(read).collect();
    contributions.sort_by_key(|contribution| contribution.start);
    contributions
}

/// The stream named `/names`. The info stream ends with a hash table that maps offsets of names to streams.
fn names_stream(msf: &Msf) -> Option<usize> {
    let info = msf.read(INFO_STREAM).ok()?;
    let mut cursor = Cursor::new(&info, 28, true);
    let names_len = cursor.u32()? as usize;
    let names = info.get(32..32_usize.checked_add(names_len)?)?;
    cursor.seek(32 + names_len);
    let (count, _) = (cursor.u32()?, cursor.u32()?);
    // Two bit sets mark the buckets that are in use and those that were.
    for _ in 0..2 {
        let words = cursor.u32()?;
        cursor.skip(u64::from(words) * 4)?;
    }
    for _ in 0..count {
        let (name, stream) = (cursor.u32()? as usize, cursor.u32()? as usize);
        if names.get(name..).is_some_and(|rest| rest.starts_with(b"/names\0")) {
            return Some(stream);
        }
    }
    None
}
