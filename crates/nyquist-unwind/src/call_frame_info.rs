//! The call frame information of a module: finds the entry that describes an address.

use crate::Damage;
use crate::cfi::FrameSection;
use crate::compile::{CodePiece, merge};
use crate::indexed_frame_section::IndexedFrameSection;
use std::ops::{Range, RangeInclusive};

/// Where call frame information is.
#[derive(Debug)]
pub(crate) enum CallFrameInfo {
    /// All of it is in memory.
    Read(ReadFrames),
    /// It is in the file, of which parts are read when walks need them.
    Indexed(IndexedFrameSection),
}

/// Call frame information that is in memory.
#[derive(Debug, Default)]
pub(crate) struct ReadFrames {
    /// By address; none overlap.
    pub(crate) pieces: Vec<CodePiece>,
    pub(crate) sections: Vec<FrameSection>,
}

impl CallFrameInfo {
    /// The addresses at which entries begin to hold, ascending.
    pub(crate) fn starts(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::Read(frames) => Box::new(frames.pieces.iter().map(|piece| piece.start)),
            Self::Indexed(frames) => Box::new(frames.starts()),
        }
    }

    /// Passes the pieces that begin in a range of addresses to `take`, by address, with the sections of their
    /// entries.
    pub(crate) fn beginning_in<T>(
        &self,
        starts: RangeInclusive<u32>,
        damage: &mut Damage,
        take: impl FnOnce(&[CodePiece], &[FrameSection], &mut Damage) -> T,
    ) -> T {
        match self {
            Self::Read(ReadFrames { pieces, sections }) => {
                let begin = pieces.partition_point(|piece| piece.start < *starts.start());
                let end = pieces.partition_point(|piece| piece.start <= *starts.end());
                take(pieces.get(begin..end).unwrap_or_default(), sections, damage)
            }
            Self::Indexed(frames) => frames.beginning_in(starts, damage, take),
        }
    }

    /// The last piece that begins at or before a relative address.
    pub(crate) fn piece_before(&self, address: u32) -> Option<CodePiece> {
        match self {
            Self::Read(ReadFrames { pieces, .. }) => {
                let after = pieces.partition_point(|piece| piece.start <= address);
                pieces.get(after.checked_sub(1)?).copied()
            }
            Self::Indexed(frames) => frames.piece_before(address),
        }
    }

    /// Passes the section and the offset of the entry for an address to `take`, if there is one.
    pub(crate) fn with_entry<T>(
        &self,
        address: u32,
        take: impl FnOnce(&FrameSection, usize) -> T,
    ) -> Option<T> {
        let (kind, offset) = self.piece_before(address)?.place()?;
        match self {
            Self::Read(frames) => {
                let section = frames.sections.iter().find(|section| section.kind == kind)?;
                Some(take(section, offset))
            }
            Self::Indexed(frames) => Some(frames.with_entry(offset, take)),
        }
    }

    /// The described ranges of code, with adjacent ranges merged. Reads the rest of the section.
    pub(crate) fn covered(&self) -> Vec<Range<u32>> {
        match self {
            Self::Read(frames) => merge(&frames.pieces),
            Self::Indexed(frames) => merge(frames.all_pieces()),
        }
    }

    /// How many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Read(ReadFrames { pieces, sections }) => {
                let sections: usize = sections.iter().map(|section| section.bytes.len()).sum();
                size_of_val(&**pieces) + sections
            }
            Self::Indexed(frames) => frames.size(),
        }
    }
}

impl Default for CallFrameInfo {
    fn default() -> Self {
        Self::Read(ReadFrames::default())
    }
}
