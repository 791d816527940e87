//! Detects which of the formats of Windows a file has.

use crate::section_contents::SharedSource;
use crate::{breakpad, pdb};
use nyquist_object::{ByteSource, DebugId, ObjectError, Pe};

/// An open file, with its headers read.
pub(crate) enum FileKind {
    Pe(Pe<SharedSource>),
    Pdb(SharedSource),
    Breakpad(SharedSource),
    /// No format of Windows.
    Other,
}

impl FileKind {
    /// Detects the format by the first bytes of the file.
    pub(crate) fn open(source: SharedSource) -> Result<Self, ObjectError> {
        let mut start = [0; pdb::MAGIC.len()];
        let start = match source.read_exact_at(0, &mut start) {
            Ok(()) => start.as_slice(),
            Err(_) => &[],
        };
        if start == pdb::MAGIC {
            Ok(Self::Pdb(source))
        } else if start.starts_with(breakpad::MAGIC) {
            Ok(Self::Breakpad(source))
        } else if start.starts_with(b"MZ") {
            Pe::open(source).map(Self::Pe)
        } else {
            Ok(Self::Other)
        }
    }

    /// The debug id of a file of Windows: its own, or that of the module that it was made for.
    pub(crate) fn windows_debug_id(&self) -> Result<Option<DebugId>, ObjectError> {
        match self {
            Self::Other => Ok(None),
            Self::Pe(pe) => pe.id().map(|id| Some(id.debug)),
            Self::Pdb(source) => pdb::debug_id(source.clone()).map(Some),
            Self::Breakpad(source) => breakpad::debug_id(source).map(Some),
        }
    }
}
