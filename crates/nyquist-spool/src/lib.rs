//! A recording on disk while it runs, in a form that survives the end of its writer.
//!
//! A [`Batch`] has the rows that the tables of a profile got since the batch before ([`TableMarks`]), and what was
//! replaced. A [`SegmentWriter`] appends batches to a file, in blocks with checksums. [`read_segment`] returns the
//! records of a file, also of one that is cut off or damaged, and [`RecoveredTables`] makes a profile of them. On
//! Linux, `folder` has the files and folders. `docs/reference/spool.md` describes the format.

#![forbid(unsafe_code)]

mod batch;
mod blocks;
mod fields;
#[cfg(target_os = "linux")]
pub mod folder;
mod header;
mod identity;
mod kind;
mod lasting_wait;
mod marker_rows;
mod meta;
mod name_source;
#[cfg(target_os = "linux")]
mod path_walk;
mod read_blocks;
mod read_code;
mod read_recording;
mod read_rows;
mod read_samples;
mod recovered;
mod row_names;
mod sample_rows;
mod state;
mod table_marks;

pub use batch::Batch;
pub use blocks::SegmentWriter;
pub use header::{BootId, Header, HeaderError};
pub use lasting_wait::LastingWait;
pub use name_source::{GeneratedCode, NameSource};
pub use read_blocks::{ReadSegment, read_segment};
pub use read_recording::{ReadRecording, RecordingError, read_recording};
pub use recovered::{Recovered, RecoveredTables};
pub use state::State;
pub use table_marks::TableMarks;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
