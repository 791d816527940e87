//! The files of a module, in the object format of its system.

use super::elf_files::ElfFiles;
use crate::cache::CachedAnswers;
use crate::debug_info::DebugInfo;
use crate::macho::MachoFiles;
use crate::section_contents::SharedSource;
use crate::symbol_table::SymbolTable;
use crate::windows::PeFiles;
use crate::{SymbolFiles, SymbolsError};
use nyquist_object::Svma;

/// The files of a module. All of them have one object format, or are the debug info of such files.
pub(crate) enum Image {
    Elf(Box<ElfFiles>),
    Pe(Box<PeFiles>),
    MachO(Box<MachoFiles>),
}

impl Default for Image {
    /// A module without any file.
    fn default() -> Self {
        Self::Elf(Box::default())
    }
}

impl Image {
    /// Opens the files that were found.
    pub(super) fn open(found: &SymbolFiles) -> Result<Self, SymbolsError> {
        if let Some(files) = MachoFiles::open(found) {
            return Ok(Self::MachO(Box::new(files)));
        }
        let files = PeFiles::open(found).map(Box::new).map(Self::Pe);
        files.map_or_else(|| ElfFiles::open(found).map(Box::new).map(Self::Elf), Ok)
    }

    /// Opens a file that is in memory.
    pub(super) fn of_bytes(bytes: SharedSource) -> Result<Self, SymbolsError> {
        if let Some(files) = MachoFiles::of_bytes(&bytes) {
            return Ok(Self::MachO(Box::new(files)));
        }
        let files = PeFiles::of_bytes(bytes.clone()).map(Box::new).map(Self::Pe);
        files.map_or_else(|| ElfFiles::of_bytes(bytes).map(Box::new).map(Self::Elf), Ok)
    }

    /// The base of relative addresses.
    pub(super) fn base(&self) -> Svma {
        match self {
            Self::Elf(files) => files.image_base(),
            Self::Pe(files) => files.image_base(),
            Self::MachO(files) => files.image_base(),
        }
    }

    /// The debug info, which is opened if it was not.
    pub(super) fn debug_info(&self, cached: Option<&CachedAnswers>) -> Option<&DebugInfo> {
        match self {
            Self::Elf(files) => files.debug_info(cached),
            Self::Pe(files) => files.debug_info.as_ref(),
            Self::MachO(files) => files.debug_info.as_ref(),
        }
    }

    /// The debug info, or that there is none. `None` as long as it was not opened.
    pub(super) fn opened_debug_info(&self) -> Option<&Option<DebugInfo>> {
        match self {
            Self::Elf(files) => files.opened_debug_info(),
            Self::Pe(files) => Some(&files.debug_info),
            Self::MachO(files) => Some(&files.debug_info),
        }
    }

    /// The tables of names, the best first.
    pub(super) fn tables(&self, cached: Option<&CachedAnswers>) -> Vec<SymbolTable> {
        match self {
            Self::Elf(files) => files.tables(cached),
            Self::Pe(files) => files.tables(),
            Self::MachO(files) => files.tables(),
        }
    }

    /// The tables that are used if none of `tables` has an answer.
    pub(super) fn fallbacks(
        &self,
        tables: &[SymbolTable],
        cached: Option<&CachedAnswers>,
    ) -> Vec<SymbolTable> {
        match self {
            Self::Elf(files) => files.fallbacks(tables, cached),
            Self::Pe(files) => files.fallbacks(),
            Self::MachO(files) => files.fallbacks(),
        }
    }
}
