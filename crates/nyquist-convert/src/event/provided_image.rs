//! What a trace of Windows states of an image, which may be on another machine.

use nyquist_object::{DebugId, ModuleId, PeCodeId, PeId};

/// What a trace of Windows states of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProvidedImage {
    /// The time and the size in its headers.
    pub code: Option<PeCodeId>,
    /// The identity of its debug information.
    pub debug: Option<DebugId>,
    /// The name of its PDB file; empty if it is not known.
    pub pdb: String,
}

impl ProvidedImage {
    /// The ids by which its files are found, if both are known.
    pub(crate) fn module_id(&self) -> Option<ModuleId> {
        Some(ModuleId::Pe(PeId { code: self.code?, debug: self.debug? }))
    }

    /// Whether a file with these ids can be the image.
    pub(crate) fn may_be(&self, id: PeId) -> bool {
        self.code.is_none_or(|code| code == id.code) && self.debug.is_none_or(|debug| debug == id.debug)
    }
}
