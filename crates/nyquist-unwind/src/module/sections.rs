//! Makes modules of sections that the caller has read, without a file.

use super::Module;
use crate::call_frame_info::{CallFrameInfo, ReadFrames};
use crate::cfi::{FrameSection, SectionKind};
use crate::code::{CodeRange, UncoveredCode};
use crate::compile::{FdeCompiler, merge};
use crate::module::open::pieces_for;
use crate::table_parts::{TableParts, Tables};
use crate::{Damage, UnwindError};
use nyquist_object::{Architecture, FileOffset, Svma};
use std::ops::Range;

/// A section of a module: its bytes, and the address that the module's file states for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The address of its first byte.
    pub address: Svma,
    /// Its contents, decompressed.
    pub bytes: Vec<u8>,
}

/// The sections of an ELF module that unwinding needs. Those that a module does not have are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// The code: `.text`, and other executable sections or whole segments. Call frame information of code
    /// that is not in them is not used.
    pub code: Vec<Section>,
    /// `.eh_frame`.
    pub eh_frame: Option<Section>,
    /// `.debug_frame`, from the module's file or from its debug file.
    pub debug_frame: Option<Section>,
    /// The address of `.got`, to which some pointers in `.eh_frame` are relative.
    pub got: Option<Svma>,
}

impl Module {
    /// Compiles the call frame information of sections that the caller has read, from a file, from another
    /// process or from the network. `image_base` is the address that the file states for the module's first
    /// byte, usually 0 for a library.
    ///
    /// Code without call frame information is walked by its instructions and by frame pointers, but its
    /// functions are not followed as those of [`Module::from_elf`], and Go's tables are not read.
    ///
    /// # Errors
    /// For an architecture that is not supported.
    pub fn from_sections(
        architecture: Architecture,
        image_base: Svma,
        sections: Sections,
    ) -> Result<Self, UnwindError> {
        if !matches!(architecture, Architecture::X86_64 | Architecture::Aarch64) {
            return Err(UnwindError::Unsupported(format!("ELF for {architecture:?}")));
        }
        let text = sections.code.iter().map(|section| section.address.0).min();
        let frame = |kind, section: Section| FrameSection {
            kind,
            bytes: section.bytes,
            address: section.address.0,
            text,
            got: sections.got.map(|got| got.0),
        };
        let eh_frame = sections.eh_frame.map(|section| frame(SectionKind::EhFrame, section));
        let debug_frame = sections.debug_frame.map(|section| frame(SectionKind::DebugFrame, section));
        let frames: Vec<FrameSection> = eh_frame.into_iter().chain(debug_frame).collect();
        let (bytes, code) = joined(sections.code, image_base);
        let ranges: Vec<Range<u32>> = code.iter().map(|code| code.range.clone()).collect();
        let mut damage = Damage::default();
        let mut compiler = FdeCompiler { image_base: image_base.0, code: &ranges, damage: &mut damage };
        let pieces = pieces_for(architecture, &mut compiler, &frames);
        let uncovered = UncoveredCode::read_source(&bytes, &code, &merge(&pieces));
        let frames = CallFrameInfo::Read(ReadFrames { pieces, sections: frames });
        let parts = TableParts::new(architecture, image_base.0, frames.starts());
        Ok(Self::of_parts(image_base, (Tables::Parts(parts), frames), uncovered, damage))
    }
}

/// The bytes of all code one after the other, and its places in the module and in these bytes, by address. A
/// section that is not in the 4 GiB of a module, or that overlaps another one, is left out.
fn joined(mut code: Vec<Section>, image_base: Svma) -> (Vec<u8>, Vec<CodeRange>) {
    code.sort_by_key(|section| section.address);
    let (mut bytes, mut ranges) = (Vec::new(), Vec::<CodeRange>::new());
    for section in code {
        let start = section.address.0.checked_sub(image_base.0).and_then(|start| u32::try_from(start).ok());
        let len = u32::try_from(section.bytes.len()).ok();
        let Some((start, end)) = start.and_then(|start| Some((start, start.checked_add(len?)?))) else {
            continue;
        };
        if start == end || ranges.last().is_some_and(|last| last.range.end > start) {
            continue;
        }
        ranges.push(CodeRange { range: start..end, offset: FileOffset(bytes.len() as u64) });
        bytes.extend(section.bytes);
    }
    (bytes, ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{Elf, FileSource, RelativeAddress};
    use std::fs::File;

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn sections_give_the_rules_of_the_file() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::open(FileSource::new(file)).unwrap();
        let of_file = Module::from_elf(&elf).unwrap();
        let section = |name: &str| {
            let address = elf.section(name).map(|section| section.address)?;
            Some(Section { address, bytes: elf.section_data(name).unwrap()? })
        };
        let code = elf.sections().iter().filter(|section| section.is_code());
        let sections = Sections {
            code: code.filter_map(|code| section(&code.name)).collect(),
            eh_frame: section(".eh_frame"),
            debug_frame: section(".debug_frame"),
            got: elf.section(".got").map(|got| got.address),
        };
        let of_sections = Module::from_sections(elf.architecture(), elf.image_base(), sections).unwrap();
        let starts: Vec<u32> = of_file.frames.starts().collect();
        assert!(starts.len() > 1000, "{}", starts.len());
        assert_eq!(of_sections.frames.starts().collect::<Vec<_>>(), starts);
        for address in starts.into_iter().flat_map(|start| [start, start + 1, start + 5, start + 20]) {
            let address = RelativeAddress(address);
            assert_eq!(of_sections.rule(address), of_file.rule(address), "{address}");
        }
        assert_eq!(of_sections.damage(), of_file.damage());
    }

    #[test]
    fn sections_elsewhere_are_left_out() {
        let at = |address, len| Section { address: Svma(address), bytes: vec![7; len] };
        let code =
            vec![at(0x2000, 16), at(0xfff, 1), at(0x1000, 0x1001), at(u64::MAX, 2), at(0x1_0000_1000, 1)];
        let (bytes, ranges) = joined(code, Svma(0x1000));
        assert_eq!(ranges, [CodeRange { range: 0..0x1001, offset: FileOffset(0) }]);
        assert_eq!(bytes.len(), 0x1001);
        let other = Module::from_sections(Architecture::X86, Svma(0), Sections::default());
        assert!(matches!(other, Err(UnwindError::Unsupported(_))));
    }
}
