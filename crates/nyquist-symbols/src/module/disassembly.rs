//! The machine code of a module's binary as text.

use super::ModuleSymbols;
use super::image::Image;
use crate::disassemble::{MAX_CODE, disassemble};
use crate::macho::MachoFiles;
use crate::section_contents::SharedSource;
use crate::{Disassembly, DisassemblyError};
use nyquist_object::elf::ElfSegment;
use nyquist_object::{Architecture, ByteSource, RelativeAddress, Svma};
use std::borrow::Cow;

impl ModuleSymbols {
    /// The machine code from `start` on as text: `size` bytes of it, or up to the function's end if this is
    /// requested.
    pub fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, DisassemblyError> {
        let (architecture, segments, source) = self.binary().ok_or(DisassemblyError::NoBinary)?;
        let address = self.svma(start);
        let function = self.functions().around(address).filter(|_| until_function_end);
        let rest = function.and_then(|function| function.range.end.offset_from(address));
        let rest = u32::try_from(rest.unwrap_or(0)).unwrap_or(MAX_CODE);
        let code = self.code(&segments, source, start, size.max(rest).min(MAX_CODE))?;
        disassemble(architecture, &code, start, address, |target| self.name_of_target(target))
    }

    /// The binary's instruction set, its mapped segments, and its bytes.
    fn binary(&self) -> Option<(Architecture, Cow<'_, [ElfSegment]>, &SharedSource)> {
        match &self.image {
            Image::Elf(files) => {
                let elf = files.binary()?;
                Some((elf.architecture(), elf.segments().into(), elf.source()))
            }
            Image::Pe(files) => {
                let pe = files.pe.as_ref()?;
                Some((pe.architecture(), pe.segments().into(), pe.source()))
            }
            Image::MachO(files) => {
                let image = files.binary()?;
                Some((image.architecture(), MachoFiles::segments(image).into(), image.source()))
            }
        }
    }

    /// The bytes of the code at `start`, up to the end of their segment.
    fn code(
        &self,
        segments: &[ElfSegment],
        source: &SharedSource,
        start: RelativeAddress,
        size: u32,
    ) -> Result<Vec<u8>, DisassemblyError> {
        let address = self.svma(start);
        let inside = |segment: &&ElfSegment| {
            let offset = address.offset_from(segment.address);
            segment.executable && offset.is_some_and(|offset| offset < segment.file_size)
        };
        let no_code = DisassemblyError::NoCode(start);
        let Some(segment) = segments.iter().find(inside) else { return Err(no_code) };
        let offset = address.0 - segment.address.0;
        let len = u64::from(size).min(segment.file_size - offset);
        let Some(file_offset) = segment.offset.checked_add(offset) else { return Err(no_code) };
        Ok(source.read_range(file_offset.0, len)?)
    }

    /// The name of a called function, or of a place within one, such as `name+0x10`.
    fn name_of_target(&self, target: Svma) -> Option<String> {
        let function = self.functions().around(target)?;
        let offset = target.offset_from(function.range.start)?;
        Some(if offset == 0 { function.name.to_string() } else { format!("{}+{offset:#x}", function.name) })
    }
}
