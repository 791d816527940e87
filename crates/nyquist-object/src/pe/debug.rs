//! The debug directory: the PDB that an image was linked with.

use super::{DataDirectory, Pe};
use crate::fields::HeaderFields;
use crate::{ByteSource, DebugId, ObjectError};

/// The size of an entry ("Debug Directory (Image Only)"), and the type of the relevant entries.
const ENTRY: usize = 28;
const IMAGE_DEBUG_TYPE_CODEVIEW: u32 = 2;

/// The maximum number of entries. Images have about five.
const MAX_ENTRIES: usize = 64;

/// The maximum size of a record: its header and a path.
const MAX_RECORD: u32 = 24 + (32 << 10);

/// The linker's record of the PDB that belongs to the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeView {
    /// The PDB's GUID and age.
    pub debug_id: DebugId,
    /// The path of the PDB on the machine that linked the image, or only its name. It is empty if a GNU
    /// linker wrote the record, because it makes no PDB.
    pub path: Vec<u8>,
}

impl CodeView {
    /// Parses a record: "RSDS", a GUID, an age, a path with a zero at its end.
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let fields = HeaderFields(record.strip_prefix(b"RSDS")?);
        let debug_id = DebugId::from_guid(fields.bytes(0)?, fields.u32(16)?);
        let path = fields.0.get(20..)?;
        let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
        Some(Self { debug_id, path: path[..end].to_vec() })
    }

    /// The PDB's name without its folder. Linkers use either kind of slash.
    pub fn file_name(&self) -> &[u8] {
        self.path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default()
    }
}

impl<S: ByteSource> Pe<S> {
    /// The first CodeView record of the debug directory; `None` if there is no debug directory or no such
    /// record in it.
    pub fn code_view(&self) -> Result<Option<CodeView>, ObjectError> {
        let Some((address, size)) = self.directory(DataDirectory::Debug) else { return Ok(None) };
        let size = size.min((MAX_ENTRIES * ENTRY) as u32);
        let entries = self.read_at(address, size)?;
        Ok(entries.chunks_exact(ENTRY).find_map(|entry| self.code_view_of(HeaderFields(entry))))
    }

    fn code_view_of(&self, entry: HeaderFields<'_>) -> Option<CodeView> {
        if entry.u32(12)? != IMAGE_DEBUG_TYPE_CODEVIEW {
            return None;
        }
        let (size, offset) = (entry.u32(16)?.min(MAX_RECORD), entry.u32(24)?);
        CodeView::parse(&self.source.read_range(offset.into(), size.into()).ok()?)
    }
}
