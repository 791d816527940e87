//! The contents of a file of Windows for names and stacks.

use super::image_symbols;
use crate::file_kind::FileKind;
use crate::section_contents::SharedSource;
use crate::{OpenFile, SymbolsError};
use nyquist_object::elf::Architecture;
use nyquist_object::pe::DataDirectory;
use nyquist_object::{DebugId, ObjectError, Pe, PeCodeId};

/// The kind and the contents of a file of Windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowsContents {
    /// An executable file or a library.
    Image(ImageContents),
    /// A PDB, by its id.
    Pdb(DebugId),
    /// A Breakpad symbol file, by the id of the module that it was made for.
    Breakpad(DebugId),
}

/// The contents of an image for names and stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageContents {
    /// The instruction set.
    pub architecture: Architecture,
    /// The id by which the image is found.
    pub code_id: PeCodeId,
    /// The id by which its debug info is found.
    pub debug_id: DebugId,
    /// The path of its PDB when it was linked. Empty if it has none.
    pub pdb_path: String,
    /// Whether the image itself has DWARF, as from GNU tools.
    pub debug_info: bool,
    /// Whether the names of functions are in a symbol table, as from GNU linkers.
    pub symbol_table: bool,
    /// How many functions are exported by name.
    pub exports: usize,
    /// How many functions the table of functions (`.pdata`) describes for unwinding, on x86_64 and 64-bit
    /// ARM.
    pub described_functions: usize,
}

impl WindowsContents {
    /// Reads a file's headers. `None` if it is not of Windows.
    ///
    /// # Errors
    /// It is a file of Windows, but is damaged.
    pub fn of(file: &OpenFile) -> Result<Option<Self>, SymbolsError> {
        let read = || -> Result<Option<Self>, ObjectError> {
            let kind = FileKind::open(file.source.clone() as SharedSource)?;
            let id = kind.windows_debug_id()?.unwrap_or_default();
            Ok(match kind {
                FileKind::Pe(pe) => Some(Self::Image(ImageContents::of(&pe)?)),
                FileKind::Pdb(_) => Some(Self::Pdb(id)),
                FileKind::Breakpad(_) => Some(Self::Breakpad(id)),
                FileKind::Other => None,
            })
        };
        read().map_err(|source| SymbolsError::Object { path: file.path.clone(), source })
    }
}

impl ImageContents {
    fn of(pe: &Pe<SharedSource>) -> Result<Self, ObjectError> {
        let id = pe.id()?;
        let code_view = pe.code_view().ok().flatten();
        // The sizes of `RUNTIME_FUNCTION` (Microsoft: x64 exception handling, ARM64 exception handling).
        let entry = match pe.architecture() {
            Architecture::X86_64 => Some(12),
            Architecture::Aarch64 => Some(8),
            _ => None,
        };
        let table = pe.directory(DataDirectory::Exceptions).zip(entry);
        Ok(Self {
            architecture: pe.architecture(),
            code_id: id.code,
            debug_id: id.debug,
            pdb_path: code_view
                .map(|view| String::from_utf8_lossy(&view.path).into_owned())
                .unwrap_or_default(),
            debug_info: pe.section(".debug_info").is_some_and(|section| section.size() > 0),
            symbol_table: !image_symbols::symbols(pe).is_empty(),
            exports: image_symbols::exports(pe).len(),
            described_functions: table.map_or(0, |((_, size), entry)| size as usize / entry),
        })
    }
}
