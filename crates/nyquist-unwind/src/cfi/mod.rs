//! Call frame information (DWARF 5, section 6.4; Linux Standard Base 5, chapter 10.6): from the bytes of
//! `.eh_frame` and `.debug_frame` to rows of rules.

mod by_offset;
mod entry;
mod expression;
mod header;
mod interpreter;
mod reader;
mod state;

pub(crate) use entry::{Entries, Fde, SectionKind};
pub(crate) use expression::Form;
pub(crate) use header::{HeaderTable, find_eh_frame};
pub(crate) use interpreter::{Interpreter, Rows};
pub(crate) use state::{Saved, State};

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
