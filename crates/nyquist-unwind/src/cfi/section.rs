//! A section of call frame information: its format, its bytes and where they are.

use super::reader::PointerBases;

/// The format of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// `.eh_frame`: the augmentation defines the encoding of pointers.
    EhFrame,
    /// `.debug_frame`: pointers are plain addresses.
    DebugFrame,
}

/// The bytes of one section of call frame information, and the bases of its encoded pointers.
#[derive(Debug)]
pub(crate) struct FrameSection {
    /// The format.
    pub(crate) kind: SectionKind,
    /// The contents.
    pub(crate) bytes: Vec<u8>,
    /// Where the section is, as stated in the file.
    pub(crate) address: u64,
    /// Where `.text` is, as stated in the file.
    pub(crate) text: Option<u64>,
    /// Where `.got` is, as stated in the file.
    pub(crate) got: Option<u64>,
}

impl FrameSection {
    /// The bases of encoded pointers, outside of any function.
    pub(crate) fn bases(&self) -> PointerBases {
        PointerBases { section: self.address, text: self.text, got: self.got, function: None }
    }
}
