//! ELF files made of given sections, so that mutations go to the sections and not to the headers around them.

use arbitrary::{Result, Unstructured};

/// The sections that a fuzz input can give, by the number that names them in it.
pub const SECTIONS: [&str; 19] = [
    ".text",
    ".eh_frame",
    ".debug_frame",
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_str_offsets",
    ".debug_addr",
    ".debug_aranges",
    ".symtab",
    ".strtab",
    ".gnu_debugdata",
    ".plt",
    ".rela.plt",
    ".gopclntab",
];

/// Where `.text` is, and the image base.
pub const TEXT: u64 = 0x1000;
const HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const SEGMENT_HEADER: usize = 56;

/// A section by its number in [`SECTIONS`], and its bytes.
pub type Section = (u8, Vec<u8>);

/// Reads sections as [`encode`] writes them: a number, a length of 16 bits, the bytes.
pub fn decode(input: &mut Unstructured<'_>) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    while sections.len() < SECTIONS.len() && input.len() > 3 {
        let number = input.arbitrary::<u8>()? % SECTIONS.len() as u8;
        let len = usize::from(input.arbitrary::<u16>()?).min(input.len());
        sections.push((number, input.bytes(len)?.to_vec()));
    }
    Ok(sections)
}

/// Writes sections for [`decode`]. A section of more than 64 kB is cut.
pub fn encode(sections: &[Section]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, data) in sections {
        let len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        bytes.push(*number);
        bytes.extend(len.to_le_bytes());
        bytes.extend(&data[..len.into()]);
    }
    bytes
}

/// A 64-bit little-endian ELF file for x86_64 of these sections and one executable segment that maps all of it.
pub fn build(sections: &[Section]) -> Vec<u8> {
    let mut names = vec![0];
    let mut data = vec![0; HEADER + SEGMENT_HEADER];
    let mut headers = vec![0; SECTION_HEADER];
    let strings = sections.iter().position(|(number, _)| SECTIONS[usize::from(*number)] == ".strtab");
    for (number, bytes) in sections {
        let name = SECTIONS[usize::from(*number)];
        let kind: u32 = match name {
            ".symtab" => 2,
            ".rela.plt" => 4,
            ".strtab" => 3,
            _ => 1,
        };
        let flags: u64 = if matches!(name, ".text" | ".plt") { 6 } else { 2 };
        let link = if kind == 2 { strings.map_or(0, |index| index as u32 + 1) } else { 0 };
        section(&mut headers, names.len() as u32, (kind, flags, link), data.len(), bytes.len());
        names.extend(name.as_bytes());
        names.push(0);
        data.extend(bytes);
    }
    section(&mut headers, 0, (3, 0, 0), data.len(), names.len());
    data.extend(names);
    let headers_at = data.len() as u64;
    let count = (headers.len() / SECTION_HEADER) as u16;
    data.extend(headers);
    let size = data.len() as u64;
    data[..HEADER].copy_from_slice(&file_header(headers_at, count));
    data[HEADER..HEADER + SEGMENT_HEADER].copy_from_slice(&segment_header(size));
    data
}

/// Appends an `Elf64_Shdr`. Everything is mapped at [`TEXT`] as it lies in the file.
fn section(to: &mut Vec<u8>, name: u32, (kind, flags, link): (u32, u64, u32), offset: usize, size: usize) {
    let offset = offset as u64;
    to.extend(name.to_le_bytes());
    to.extend(kind.to_le_bytes());
    to.extend([flags, TEXT + offset, offset, size as u64].map(u64::to_le_bytes).as_flattened());
    to.extend(link.to_le_bytes());
    to.extend(0_u32.to_le_bytes());
    let entry: u64 = if kind == 2 || kind == 4 { 24 } else { 0 };
    to.extend([1, entry].map(u64::to_le_bytes).as_flattened());
}

/// An `Elf64_Ehdr`.
fn file_header(sections_at: u64, sections: u16) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    header[16..24].copy_from_slice(&[3, 0, 62, 0, 1, 0, 0, 0]);
    header[32..40].copy_from_slice(&(HEADER as u64).to_le_bytes());
    header[40..48].copy_from_slice(&sections_at.to_le_bytes());
    let counts = [HEADER as u16, SEGMENT_HEADER as u16, 1, SECTION_HEADER as u16, sections, sections - 1];
    header[52..].copy_from_slice(counts.map(u16::to_le_bytes).as_flattened());
    header
}

/// An `Elf64_Phdr` that maps the whole file as code.
fn segment_header(size: u64) -> [u8; SEGMENT_HEADER] {
    let mut header = [0; SEGMENT_HEADER];
    header[..8].copy_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    let fields = [0, TEXT, TEXT, size, size, 0x1000];
    header[8..].copy_from_slice(fields.map(u64::to_le_bytes).as_flattened());
    header
}
