//! The files that were found for a module of Windows: its image, and a PDB or a Breakpad symbol file.

use super::image_symbols;
use crate::debug_info::DebugInfo;
use crate::dwarf::{Dwarf, DwarfFile, SplitFiles};
use crate::file_kind::FileKind;
use crate::section_contents::SharedSource;
use crate::symbol_table::SymbolTable;
use crate::{OpenFile, SymbolFiles};
use nyquist_object::{Pe, Svma};

/// A module's image and its debug info. Either can be missing, but not both.
pub(crate) struct PeFiles {
    pub(crate) pe: Option<Pe<SharedSource>>,
    pub(crate) debug_info: Option<DebugInfo>,
}

impl PeFiles {
    /// Opens the files that were found. `None` if they are not of Windows. Damaged files are left out.
    pub(crate) fn open(found: &SymbolFiles) -> Option<Self> {
        let open = |file: &OpenFile| FileKind::open(file.source.clone() as SharedSource).ok();
        Self::join(found.binary.as_ref().and_then(open), found.debug_file.as_ref().and_then(open))
    }

    /// Opens a file of Windows that is in memory: an image, a PDB or a symbol file.
    pub(crate) fn of_bytes(source: SharedSource) -> Option<Self> {
        match FileKind::open(source).ok()? {
            image @ FileKind::Pe(_) => Self::join(Some(image), None),
            debug_file => Self::join(None, Some(debug_file)),
        }
    }

    fn join(image: Option<FileKind>, debug_file: Option<FileKind>) -> Option<Self> {
        let pe = match image {
            Some(FileKind::Pe(pe)) => Some(pe),
            _ => None,
        };
        let debug_info = debug_file.and_then(|file| DebugInfo::of_file(file, image_base(pe.as_ref())));
        let debug_info = debug_info.or_else(|| dwarf(pe.as_ref()?));
        (pe.is_some() || debug_info.is_some()).then_some(Self { pe, debug_info })
    }

    /// The preferred address of the image.
    pub(crate) fn image_base(&self) -> Svma {
        image_base(self.pe.as_ref())
    }

    /// The tables of names, the best first: the public symbols of the debug info, and the names in the image.
    pub(crate) fn tables(&self) -> Vec<SymbolTable> {
        let publics = self.debug_info.as_ref().and_then(DebugInfo::public_symbols);
        let of_image = self.pe.as_ref().map(image_symbols::tables).unwrap_or_default();
        publics.into_iter().chain(of_image).collect()
    }

    /// The table that is used if no other table has an answer: functions with stand-ins for names.
    pub(crate) fn fallbacks(&self) -> Vec<SymbolTable> {
        self.pe.as_ref().and_then(image_symbols::unnamed).into_iter().collect()
    }
}

fn image_base(pe: Option<&Pe<SharedSource>>) -> Svma {
    pe.map_or(Svma(0), Pe::image_base)
}

/// The DWARF that GNU linkers and compatible ones write into images.
fn dwarf(pe: &Pe<SharedSource>) -> Option<DebugInfo> {
    let main = DwarfFile::open_pe(pe)?;
    let code = pe.segments().into_iter().filter(|segment| segment.executable);
    let first_code = code.map(|segment| segment.address.0).min().unwrap_or(0);
    Some(DebugInfo::Dwarf(Box::new(Dwarf::new(main, None, SplitFiles::default(), first_code))))
}
