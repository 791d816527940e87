//! The files that were found for a module of Windows: its image, and a PDB or a Breakpad symbol file.

use crate::breakpad::Breakpad;
use crate::debug_info::DebugInfo;
use crate::dwarf::{Dwarf, DwarfFile, SplitFiles};
use crate::file_kind::FileKind;
use crate::pdb::Pdb;
use crate::section_contents::SharedSource;
use crate::{OpenFile, SymbolFiles};
use nyquist_object::{Pe, Svma};

/// A module's image and its debug info. Either can be missing, but not both.
pub(crate) struct WindowsFiles {
    pub(crate) pe: Option<Pe<SharedSource>>,
    pub(crate) debug_info: Option<DebugInfo>,
}

impl WindowsFiles {
    /// Opens the files that were found. `None` if they are not of Windows. Damaged files are left out.
    pub(crate) fn of(found: &SymbolFiles) -> Option<Self> {
        let open = |file: &OpenFile| FileKind::open(file.source.clone() as SharedSource).ok();
        Self::join(found.binary.as_ref().and_then(open), found.debug_file.as_ref().and_then(open))
    }

    /// Opens a file of Windows that is in memory: an image, a PDB or a symbol file.
    pub(crate) fn of_image(source: SharedSource) -> Option<Self> {
        match FileKind::open(source).ok()? {
            image @ FileKind::Pe(_) => Self::join(Some(image), None),
            debug_file => Self::join(None, Some(debug_file)),
        }
    }

    fn join(image: Option<FileKind>, debug_file: Option<FileKind>) -> Option<Self> {
        let pe = image.and_then(|kind| match kind {
            FileKind::Pe(pe) => Some(pe),
            _ => None,
        });
        let image_base = pe.as_ref().map_or(Svma(0), Pe::image_base);
        let debug_info = match debug_file {
            Some(FileKind::Pdb(source)) => {
                Pdb::open(source, image_base).ok().map(|pdb| DebugInfo::Pdb(Box::new(pdb)))
            }
            Some(FileKind::Breakpad(source)) => {
                Breakpad::open(&source, image_base).ok().map(|symbols| DebugInfo::Breakpad(Box::new(symbols)))
            }
            _ => None,
        };
        let debug_info = debug_info.or_else(|| dwarf(pe.as_ref()?));
        (pe.is_some() || debug_info.is_some()).then_some(Self { pe, debug_info })
    }
}

/// The DWARF that GNU linkers and compatible ones write into images.
fn dwarf(pe: &Pe<SharedSource>) -> Option<DebugInfo> {
    let main = DwarfFile::open_pe(pe)?;
    let code = pe.segments().into_iter().filter(|segment| segment.executable);
    let first_code = code.map(|segment| segment.address.0).min().unwrap_or(0);
    Some(DebugInfo::Dwarf(Box::new(Dwarf::new(main, None, SplitFiles::default(), first_code))))
}
