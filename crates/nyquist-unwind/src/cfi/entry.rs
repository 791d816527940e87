//! The entries of a section: common information (CIE) and frame descriptions (FDE).

use super::by_offset::ByOffset;
use super::reader::SectionReader;
use super::section::{FrameSection, SectionKind};

/// The encoding of addresses that all compilers use: four bytes, signed, relative to their own place.
const RELATIVE: u8 = 0x1b;

/// What the descriptions of many functions have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cie<'a> {
    /// The unit of advances of code addresses.
    pub(crate) code_factor: u64,
    /// The unit of offsets.
    pub(crate) data_factor: i64,
    /// The column of the return address.
    pub(crate) return_register: u64,
    /// How the addresses of its FDEs are encoded.
    pub(crate) pointer_encoding: u8,
    /// Whether its functions are signal frames.
    pub(crate) is_signal: bool,
    /// Whether FDEs have augmentation data.
    has_augmentation: bool,
    /// The initial instructions.
    pub(crate) instructions: SectionReader<'a>,
}

/// The description of a range of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fde<'a> {
    /// Where the entry is in the section.
    pub(crate) offset: usize,
    /// The first address, as stated in the file.
    pub(crate) start: u64,
    /// The address after the last byte. Not before `start`.
    pub(crate) end: u64,
    /// Where its CIE is in the section.
    pub(crate) cie_offset: usize,
    /// The instructions.
    pub(crate) instructions: SectionReader<'a>,
}

/// An entry that is not a valid FDE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadEntry {
    /// Where in the section.
    pub(crate) offset: usize,
    /// What is wrong.
    pub(crate) reason: &'static str,
}

/// The FDEs of a section in the order of the file.
#[derive(Debug)]
pub(crate) struct FdeEntries<'a> {
    section: &'a FrameSection,
    position: usize,
    /// CIEs seen before.
    cies: ByOffset<Result<Cie<'a>, &'static str>>,
}

/// The bounds of one entry, and the number that distinguishes CIE from FDE.
struct EntryHeader {
    /// Where the fields after the id begin.
    body: usize,
    end: usize,
    id: u64,
    /// Where the id itself is.
    id_offset: usize,
    is_64: bool,
}

impl FrameSection {
    /// The end of the entry at `offset`, and the offset of its CIE, if it is an FDE. `None` if no entry is at
    /// `offset`.
    pub(crate) fn reach(&self, offset: usize) -> Option<(usize, Option<usize>)> {
        let header = self.header(offset).ok()??;
        let common = if self.is_cie(&header) { None } else { self.cie_offset(&header) };
        Some((header.end, common))
    }

    /// Reads the length and the id of the entry at `offset`; `Ok(None)` for a terminator.
    #[inline]
    fn header(&self, offset: usize) -> Result<Option<EntryHeader>, &'static str> {
        self.short_header(offset).map_or_else(|| self.any_header(offset), |header| Ok(Some(header)))
    }

    /// The header of a valid entry with a length of four bytes, as all entries have in practice.
    #[inline]
    fn short_header(&self, offset: usize) -> Option<EntryHeader> {
        let [length, id] = *self.bytes.get(offset..)?.first_chunk::<8>()?.as_chunks().0 else { return None };
        let (length, id) = (u32::from_le_bytes(length), u32::from_le_bytes(id));
        let (id_offset, body) = (offset + 4, offset + 8);
        // A length with all bits set means that a length of eight bytes follows.
        let end = id_offset.checked_add(length as usize).filter(|&end| end <= self.bytes.len())?;
        let is_short = end >= body && length != u32::MAX;
        is_short.then_some(EntryHeader { body, end, id: id.into(), id_offset, is_64: false })
    }

    #[cold]
    fn any_header(&self, offset: usize) -> Result<Option<EntryHeader>, &'static str> {
        const CUT: &str = "the section ends within an entry";
        let mut reader = SectionReader::new(&self.bytes, offset, self.bytes.len()).ok_or(CUT)?;
        let short = reader.u32().ok_or(CUT)?;
        let is_64 = short == u32::MAX;
        let length = if is_64 { reader.u64().ok_or(CUT)? } else { u64::from(short) };
        if length == 0 {
            return Ok(None);
        }
        let id_offset = reader.position();
        let end = usize::try_from(length).ok().and_then(|length| id_offset.checked_add(length));
        let end = end.filter(|&end| end <= self.bytes.len()).ok_or(CUT)?;
        let id = if is_64 { reader.u64() } else { reader.u32().map(u64::from) };
        let id = id.filter(|_| reader.position() <= end).ok_or("an entry too short for its id")?;
        Ok(Some(EntryHeader { body: reader.position(), end, id, id_offset, is_64 }))
    }

    fn is_cie(&self, header: &EntryHeader) -> bool {
        match self.kind {
            SectionKind::EhFrame => header.id == 0,
            SectionKind::DebugFrame if header.is_64 => header.id == u64::MAX,
            SectionKind::DebugFrame => header.id == u64::from(u32::MAX),
        }
    }

    fn cie_offset(&self, header: &EntryHeader) -> Option<usize> {
        let id = usize::try_from(header.id).ok()?;
        match self.kind {
            SectionKind::EhFrame => header.id_offset.checked_sub(id),
            SectionKind::DebugFrame => Some(id),
        }
    }

    /// Reads the CIE at `offset`.
    fn cie(&self, offset: usize) -> Result<Cie<'_>, &'static str> {
        let header = self.header(offset)?.filter(|header| self.is_cie(header));
        let header = header.ok_or("an FDE refers to an entry that is not a CIE")?;
        let reader = SectionReader::new(&self.bytes, header.body, header.end);
        reader.and_then(|reader| self.parse_cie(reader)).ok_or("a damaged CIE")
    }

    fn parse_cie<'a>(&'a self, mut reader: SectionReader<'a>) -> Option<Cie<'a>> {
        let version = reader.u8().filter(|version| matches!(version, 1 | 3 | 4))?;
        let augmentation = reader.string()?;
        let address_size = if version == 4 { reader.u8()? } else { 8 };
        if version == 4 && reader.u8()? != 0 {
            return None;
        }
        let code_factor = reader.uleb()?;
        let data_factor = reader.sleb()?;
        let return_register = if version == 1 { u64::from(reader.u8()?) } else { reader.uleb()? };
        let absolute = if address_size == 4 { 0x03 } else { 0x00 };
        let mut cie = Cie {
            code_factor,
            data_factor,
            return_register,
            pointer_encoding: absolute,
            is_signal: false,
            has_augmentation: false,
            instructions: reader,
        };
        self.parse_augmentation(augmentation, &mut cie)?;
        matches!(address_size, 4 | 8).then_some(cie)
    }

    /// Reads the augmentation data that the letters announce, and leaves the cursor at the instructions.
    fn parse_augmentation(&self, letters: &[u8], cie: &mut Cie<'_>) -> Option<()> {
        let Some((b'z', letters)) = letters.split_first() else {
            return letters.is_empty().then_some(());
        };
        cie.has_augmentation = true;
        let len = cie.instructions.uleb()?;
        let mut data = cie.instructions;
        cie.instructions.skip(len)?;
        for letter in letters {
            match letter {
                b'R' => cie.pointer_encoding = data.u8()?,
                b'L' => drop(data.u8()?),
                b'P' => {
                    // The address of the personality routine is not needed, only its size.
                    match data.u8()? {
                        0x50 => data.pointer(0x50, &self.bases())?,
                        encoding => data.value(encoding)?,
                    };
                }
                b'S' => cie.is_signal = true,
                b'B' => {}
                // The total length is known, so an unknown letter and all following ones can be skipped.
                _ => break,
            }
        }
        Some(())
    }

    /// Where the code that an FDE describes begins, how many bytes it has, and the instructions.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a cursor that is read through a reference is copied as stores that are under way"
    )]
    fn fde_fields<'a>(
        &'a self,
        header: &EntryHeader,
        cie: &Cie<'a>,
    ) -> Option<(u64, u64, SectionReader<'a>)> {
        let is_common = cie.pointer_encoding == RELATIVE && cie.has_augmentation;
        let common = is_common.then(|| self.common_fde_fields(header)).flatten();
        common.or_else(|| self.any_fde_fields(header, cie))
    }

    /// As [`FrameSection::fde_fields`], for an FDE in the form that all compilers write.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn common_fde_fields(&self, header: &EntryHeader) -> Option<(u64, u64, SectionReader<'_>)> {
        let (fields, rest) = self.bytes.get(header.body..header.end)?.split_first_chunk::<8>()?;
        let ([start, len], []) = fields.as_chunks() else { return None };
        let (augmentation, rest) = rest.split_first().filter(|(len, _)| **len < 0x80)?;
        let skipped = rest.len().checked_sub(usize::from(*augmentation))?;
        let instructions = SectionReader::new(&self.bytes, header.end - skipped, header.end)?;
        let at = self.address.wrapping_add(header.body as u64);
        let extended = |word: &[u8; 4]| i64::from(i32::from_le_bytes(*word));
        Some((at.wrapping_add_signed(extended(start)), extended(len) as u64, instructions))
    }

    /// As [`FrameSection::fde_fields`], for any FDE.
    #[cold]
    fn any_fde_fields<'a>(
        &'a self,
        header: &EntryHeader,
        cie: &Cie<'a>,
    ) -> Option<(u64, u64, SectionReader<'a>)> {
        let mut reader = SectionReader::new(&self.bytes, header.body, header.end)?;
        let encoding = cie.pointer_encoding;
        let start = reader.pointer(encoding, &self.bases())?;
        let len = if encoding == 0x50 { reader.u64()? } else { reader.value(encoding)? };
        if cie.has_augmentation {
            let len = reader.uleb()?;
            reader.skip(len)?;
        }
        Some((start, len, reader))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn parse_fde<'a>(
        &'a self,
        offset: usize,
        header: &EntryHeader,
        cie_offset: usize,
        cie: &Cie<'a>,
    ) -> Option<Fde<'a>> {
        let (start, len, instructions) = self.fde_fields(header, cie)?;
        Some(Fde { offset, start, end: start.checked_add(len)?, cie_offset, instructions })
    }
}

impl<'a> FdeEntries<'a> {
    pub(crate) fn new(section: &'a FrameSection) -> Self {
        Self { section, position: 0, cies: ByOffset::new(Err("no CIE")) }
    }

    /// The FDE at `offset`, which must have been found before, and its CIE.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    pub(crate) fn at(&mut self, offset: usize) -> Option<(Fde<'a>, &Cie<'a>)> {
        let header = self.section.header(offset).ok()??;
        self.read(offset, &header).ok()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn read(&mut self, offset: usize, header: &EntryHeader) -> Result<(Fde<'a>, &Cie<'a>), &'static str> {
        let section = self.section;
        let cie_offset = section.cie_offset(header).ok_or("an FDE names a CIE before the section")?;
        let cie = self.cies.get_or_make(cie_offset, || section.cie(cie_offset));
        let cie = cie.as_ref().map_err(|reason| *reason)?;
        let fde = section.parse_fde(offset, header, cie_offset, cie).ok_or("a damaged FDE")?;
        Ok((fde, cie))
    }
}

impl<'a> Iterator for FdeEntries<'a> {
    type Item = Result<Fde<'a>, BadEntry>;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let offset = self.position;
            if offset >= self.section.bytes.len() {
                return None;
            }
            match self.section.header(offset) {
                // A terminator. Linkers leave terminators in the middle of sections, so the entries after it
                // are read too.
                Ok(None) => self.position = offset + 4,
                Ok(Some(header)) => {
                    self.position = header.end;
                    if !self.section.is_cie(&header) {
                        let entry = self.read(offset, &header);
                        return Some(entry.map(|(fde, _)| fde).map_err(|reason| BadEntry { offset, reason }));
                    }
                }
                Err(reason) => {
                    // Without a valid length, no entry after it can be found.
                    self.position = self.section.bytes.len();
                    return Some(Err(BadEntry { offset, reason }));
                }
            }
        }
    }
}
