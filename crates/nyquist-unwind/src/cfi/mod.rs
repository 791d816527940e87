//! Call frame information (DWARF 5, section 6.4; Linux Standard Base 5, chapter 10.6): from the bytes of
//! `.eh_frame` and `.debug_frame` to rows of rules.

mod by_offset;
mod entry;
mod expression;
mod header;
mod interpreter;
mod reader;
mod row;
mod section;

pub(crate) use entry::{Fde, FdeEntries};
pub(crate) use expression::ExpressionForm;
pub(crate) use header::{HeaderTable, find_eh_frame};
pub(crate) use interpreter::{Interpreter, RowReceiver};
pub(crate) use row::{CfiRow, RegisterRule};
pub(crate) use section::{FrameSection, SectionKind};
