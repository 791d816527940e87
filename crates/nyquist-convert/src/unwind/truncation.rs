//! Why a stack could not be finished.

use crate::event::pre_unwound::Walked;
use nyquist_profile::well_known;
use nyquist_unwind::{self as unwind, WalkEnd};
use std::fmt;

/// Why a stack could not be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Truncation {
    /// The stack copy reached its size limit.
    CopyLimit {
        /// The copy's size in kilobytes.
        kilobytes: usize,
    },
    /// The same, and the process denies access to its memory, where the remainder would be.
    DeniedMemory {
        /// The copy's size in kilobytes.
        kilobytes: usize,
    },
    /// The unwinder could not continue.
    Walk(unwind::Reason),
    /// It is a 32-bit program.
    Code32,
    /// The process's mappings are not known.
    UnknownMappings,
    /// The process's mappings were dropped, because they took too much memory.
    DroppedMappings,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CopyLimit { kilobytes } => write!(f, "stack copy ended after {kilobytes} kB"),
            Self::DeniedMemory { kilobytes } => write!(
                f,
                "stack copy ended after {kilobytes} kB, and the process denies access to its memory (PR_SET_DUMPABLE)"
            ),
            Self::Walk(reason) => reason.fmt(f),
            Self::Code32 => f.write_str("32-bit code is not unwound"),
            Self::UnknownMappings => f.write_str(well_known::UNKNOWN_MAPPINGS),
            Self::DroppedMappings => f.write_str("the process's mappings took too much memory"),
        }
    }
}

impl Truncation {
    /// The same of a process that denies access to its memory.
    pub(crate) fn without_memory(self) -> Self {
        match self {
            Self::CopyLimit { kilobytes } => Self::DeniedMemory { kilobytes },
            other => other,
        }
    }
}

/// Why a walk did not reach the root.
pub(crate) fn truncation(walked: Walked, limited: bool, stack_len: usize) -> Option<Truncation> {
    match walked {
        Walked::BetweenPrograms | Walked::To(WalkEnd::Root | WalkEnd::Bottom) => None,
        Walked::Code32 => Some(Truncation::Code32),
        Walked::To(WalkEnd::Truncated(_)) if limited && walked.ended_with_copy() => {
            Some(Truncation::CopyLimit { kilobytes: stack_len / 1024 })
        }
        Walked::To(WalkEnd::Truncated(reason)) => Some(Truncation::Walk(reason)),
    }
}
