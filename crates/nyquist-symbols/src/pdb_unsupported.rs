//! In place of `pdb`, if the feature is off: no PDB can be opened.

use crate::allowance::Allowance;
use crate::debug_answer::DebugAnswer;
use crate::named_range::NamedRange;
use crate::section_contents::SharedSource;
use nyquist_object::{DebugId, ObjectError, Svma};

/// The first bytes of a PDB (LLVM, "The MSF File Format").
pub(crate) const MAGIC: &[u8; 32] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";

/// A PDB, of which there is none.
pub(crate) enum Pdb {}

/// The refusal of every PDB.
fn unsupported() -> ObjectError {
    ObjectError::Unsupported("PDB: nyquist was built without the feature `pdb`".to_owned())
}

pub(crate) fn debug_id(_: SharedSource) -> Result<DebugId, ObjectError> {
    Err(unsupported())
}

impl Pdb {
    pub(crate) fn open(_: SharedSource, _: Svma) -> Result<Self, ObjectError> {
        Err(unsupported())
    }

    pub(crate) fn unit_of(&self, _: u64) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn named_ranges(&self) -> Vec<NamedRange> {
        match *self {}
    }

    pub(crate) fn look_up(&self, _: u64, _: &[u64], _: &mut Allowance) -> Vec<DebugAnswer> {
        match *self {}
    }

    pub(crate) fn names_source(&self, _: u64, _: &mut dyn FnMut(&str) -> bool) -> bool {
        match *self {}
    }
}

impl std::fmt::Debug for Pdb {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}
