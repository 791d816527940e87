//! Stand-ins for the names of a stripped file's functions. The unwind information states where each begins
//! and ends, and the header states the entry point.

use crate::named_range::NamedRange;
use crate::section_contents::SharedSource;
use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EndianSlice, FrameDescriptionEntry, RunTimeEndian, UnwindSection as _,
};
use nyquist_object::{ByteSource, Elf, Svma};

/// The conventional name of the code with which a program begins (System V gABI, "Process Initialization").
const ENTRY_POINT: &str = "_start";

/// The functions that `.eh_frame` describes, named after their relative addresses: `fun_1f40`.
pub(crate) fn unnamed_functions(elf: &Elf<SharedSource>) -> Vec<NamedRange> {
    described_code(elf).into_iter().filter_map(|(start, len)| named(elf, start, len)).collect()
}

/// The start and the length of each piece of code that `.eh_frame` describes.
pub(crate) fn described_code<S: ByteSource>(elf: &Elf<S>) -> Vec<(u64, u64)> {
    let mut functions = Vec::new();
    each_description(elf, |FrameDescription { entry, .. }| {
        functions.push((entry.initial_address(), entry.len()));
    });
    functions
}

/// An entry of `.eh_frame` for a piece of code, and the data to read its instructions.
pub(crate) struct FrameDescription<'a, 'data> {
    pub(crate) section: &'a EhFrame<SectionBytes<'data>>,
    pub(crate) bases: &'a BaseAddresses,
    pub(crate) entry: FrameDescriptionEntry<SectionBytes<'data>>,
}

type SectionBytes<'data> = EndianSlice<'data, RunTimeEndian>;

/// Calls `visit` with each entry of `.eh_frame`. Reading stops at the first damaged entry.
pub(crate) fn each_description<S: ByteSource>(elf: &Elf<S>, mut visit: impl FnMut(FrameDescription<'_, '_>)) {
    let Some(header) = elf.section(".eh_frame") else { return };
    let bytes = elf.data(header).unwrap_or_default();
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut section = EhFrame::from(EndianSlice::new(&bytes, endian));
    section.set_address_size(if elf.is_64_bit() { 8 } else { 4 });
    let text = elf.section(".text").map_or(Svma(0), |text| text.address);
    let bases = BaseAddresses::default().set_eh_frame(header.address.0).set_text(text.0);
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        visit(FrameDescription { section: &section, bases: &bases, entry });
    }
}

fn named(elf: &Elf<SharedSource>, start: u64, len: u64) -> Option<NamedRange> {
    let end = start.checked_add(len).filter(|end| *end > start)?;
    let relative = start.checked_sub(elf.image_base().0)?;
    let is_entry_point = elf.entry_point() == Some(Svma(start));
    let name = if is_entry_point { ENTRY_POINT.to_owned() } else { format!("fun_{relative:x}") };
    Some(NamedRange { start, end, name: name.into_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::FileSource;
    use std::fs::File;
    use std::sync::Arc;

    fn own_binary() -> Elf<SharedSource> {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        Elf::open(Arc::new(FileSource::new(file)) as SharedSource).unwrap()
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn the_entry_point_and_all_others_have_names() {
        let elf = own_binary();
        let functions = unnamed_functions(&elf);
        let entry = functions.iter().find(|function| function.name == b"_start").unwrap();
        assert_eq!(Some(Svma(entry.start)), elf.entry_point());
        assert!(functions.len() > 100);
        assert!(functions.iter().all(|function| function.start < function.end));
        let other = functions.iter().find(|function| function.name != b"_start").unwrap();
        let expected = format!("fun_{:x}", other.start - elf.image_base().0);
        assert_eq!(String::from_utf8_lossy(&other.name), expected);
    }
}
