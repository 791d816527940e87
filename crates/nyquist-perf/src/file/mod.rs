//! perf.data files, written by `perf record` as a file, as a folder or as a stream.
//!
//! Source: Linux's `tools/perf/Documentation/perf.data-file-format.txt`, `perf.data-directory-format.txt`,
//! and for other details `tools/perf/util/{header,session,zstd}.c`.
//!
//! A file is read from start to end in chunks of bounded size and is never mapped. So a file that becomes
//! shorter while it is read causes an error and not a signal.

mod description;
mod error;
mod events;
mod features;
mod header;
mod place;
mod reader;
mod simpleperf;
mod stream;
mod tool;
mod tracepoint;
mod writer;
mod zstd;

pub use error::{Damage, DamageKind, FileError};
pub use events::{EventTable, FileEvent};
pub use features::{ClockMoment, EventDescription, Features, FileBuildId, feature};
pub use header::{FileHeader, PerfSection, PerfSections};
pub use place::{Place, PlacedFiles};
pub use reader::{FileReader, FileRecord, RecordingItem};
pub use simpleperf::{FileSymbol, SimplePerf, SymbolFile, SymbolFileKind};
pub use stream::PIECE_BYTES;
pub use tool::tool_record;
pub use tracepoint::{FieldKind, FieldValue, TracepointField, TracepointFormat, Tracepoints};
pub use writer::{FileWriter, WrittenEvent, record};
