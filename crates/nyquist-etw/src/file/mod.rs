//! Files of traces (`.etl`).
//!
//! A file is a sequence of buffers, as the session wrote them. A buffer holds events of one CPU in the order of
//! their times. So the events of a trace are those of all CPUs, merged by time.
//!
//! Microsoft does not document the file. `WNODE_HEADER` (wmistr.h) is the first part of a buffer's header, and
//! evntrace.h has some of the event headers. The others are described in System Informer's ntwmi.h and in the
//! readers etl-parser and snail.

mod buffer;
mod decompress;
mod error;
mod groups;
mod header;
mod reader;
mod stream;

pub use decompress::Compression;
pub use error::FileError;
pub use reader::FileReader;
