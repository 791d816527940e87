//! The header of `.eh_frame`, `.eh_frame_hdr`, which a program header names (Linux Standard Base 5, section
//! 10.6.2). It states where the entries are, and where the section is in files whose section headers were
//! removed.

use super::reader::{PointerBases, SectionReader};
use super::section::{FrameSection, SectionKind};
use nyquist_object::{ByteSource, Elf, ObjectError, Svma};

/// The encoding of an omitted field.
const OMITTED: u8 = 0xff;

/// The encoding of the table that all linkers write: four bytes, signed, relative to the header.
const SHORT: u8 = 0x3b;

/// The entries of a section, as the table of its header lists them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderTable<'a> {
    /// Where the section is, as stated in the file.
    pub(crate) section: u64,
    /// Where the header is.
    address: u64,
    words: &'a [[u8; 4]],
}

impl<'a> HeaderTable<'a> {
    /// The table of a header at an address. `None` if it has no table with the common encoding.
    pub(crate) fn parse(header: &'a [u8], address: Svma) -> Option<Self> {
        let mut start = HeaderStart::read(header, address)?;
        if start.table != SHORT || start.count == OMITTED {
            return None;
        }
        let count = usize::try_from(start.reader.pointer(start.count, &start.bases)?).ok()?;
        let table = start.reader.rest().get(..count.checked_mul(8)?)?;
        Some(Self { section: start.section, address: address.0, words: table.as_chunks().0 })
    }

    /// The address from which each entry is valid, and where the entry is, as stated in the file.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        let address = self.address;
        let at = move |word: [u8; 4]| address.wrapping_add_signed(i32::from_le_bytes(word).into());
        self.words.as_chunks().0.iter().map(move |[start, entry]| (at(*start), at(*entry)))
    }
}

/// The section. `None` if no program header names its header, or if the header has an unknown form.
///
/// # Errors
/// If the bytes cannot be read.
pub(crate) fn find_eh_frame<S: ByteSource>(elf: &Elf<S>) -> Result<Option<FrameSection>, ObjectError> {
    let Some(segment) = elf.unwind_header() else { return Ok(None) };
    let header = elf.source().read_range(segment.offset.0, segment.file_size)?;
    let Some((address, last)) = extent(&header, segment.address) else { return Ok(None) };
    let Some((offset, room)) = elf.file_range(Svma(address)) else { return Ok(None) };
    let len = match last.and_then(|last| last.checked_sub(address)).filter(|last| *last < room) {
        Some(last) => {
            let length = elf.source().read_range(offset.0 + last, 4.min(room - last))?;
            let length = length.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
            room.min(last + 4 + u64::from(length))
        }
        // Bytes after the section are treated as part of it, up to the first invalid entry.
        None => room,
    };
    let bytes = elf.source().read_range(offset.0, len)?;
    let (kind, text, got) = (SectionKind::EhFrame, None, None);
    Ok(Some(FrameSection { kind, bytes, address, text, got }))
}

/// Where the section begins, and the FDE with the highest address, if the header has a table.
fn extent(header: &[u8], address: Svma) -> Option<(u64, Option<u64>)> {
    let HeaderStart { section, count, table, bases, mut reader } = HeaderStart::read(header, address)?;
    if count == OMITTED || table == OMITTED {
        return Some((section, None));
    }
    let count = reader.pointer(count, &bases)?;
    let mut last = None;
    for _ in 0..count {
        let (Some(_), fde @ Some(_)) = (reader.pointer(table, &bases), reader.pointer(table, &bases)) else {
            break;
        };
        last = last.max(fde);
    }
    Some((section, last))
}

/// The fields that a header begins with.
struct HeaderStart<'a> {
    /// Where the section is.
    section: u64,
    /// The encodings of the number of entries and of the addresses in the table.
    count: u8,
    table: u8,
    bases: PointerBases,
    /// At the number of entries.
    reader: SectionReader<'a>,
}

impl<'a> HeaderStart<'a> {
    fn read(header: &'a [u8], address: Svma) -> Option<Self> {
        let mut reader = SectionReader::new(header, 0, header.len())?;
        let [version, section, count, table] = reader.array()?;
        // Data-relative values are relative to the header.
        let bases = PointerBases { section: address.0, got: Some(address.0), ..PointerBases::default() };
        let section = reader.pointer(section, &bases).filter(|_| version == 1)?;
        Some(Self { section, count, table, bases, reader })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_where_the_section_ends() {
        let check = |bytes: &[u8], expected| assert_eq!(extent(bytes, Svma(0x1000)), expected, "{bytes:x?}");
        let encodings = [1, 0x1b, 0x03, 0x3b];
        let words = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let header = |rest: &[i32]| [&encodings[..], &words(rest)].concat();
        check(&header(&[0x20, 2, -0x800, 0x60, -0x700, 0x40]), Some((0x1024, Some(0x1060))));
        check(&header(&[0x20, 0]), Some((0x1024, None)));
        // A wrong count.
        check(&header(&[0x20, -1, -0x800, 0x60]), Some((0x1024, Some(0x1060))));
        check(&[&[1, 0x1b, 0xff, 0xff][..], &words(&[0x20])].concat(), Some((0x1024, None)));
        check(&[&[2, 0x1b, 0xff, 0xff][..], &words(&[0x20])].concat(), None);
        check(&[1, 0x1b, 0x03], None);
        check(&[1, 0x1b, 0x03, 0x3b, 0, 0], None);
    }
}
