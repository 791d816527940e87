//! Converts a perf.data recording to a profile, by the same converter as for live recordings. It also writes
//! live recordings and profiles as perf.data files.

mod choose;
mod conversion;
mod converting;
mod deferred;
mod describe;
mod error;
mod import;
mod live;
mod marker_files;
mod marks;
mod options;
mod reading;
mod record;
mod simpleperf;
mod write;

use nyquist_perf::file::FileReader;
use nyquist_resources::cpu_count;

use import::Import;

pub use choose::EventUse;
pub use error::ImportError;
pub use options::{ImportOptions, ImportedProfile};
pub use record::RecordingWriter;
pub use write::{StandIn, WriteOptions, write_profile};

/// Reads a recording to its end and converts it.
///
/// Damage ends the recording: the records before it are converted, and a note reports this. Events are held
/// in memory until the recording states that no older ones follow.
///
/// Threads take turns at reading and decoding records. Each thread then walks the stack copies that it has
/// read. A thread that waits for its turn converts meanwhile.
pub fn import(reader: FileReader, options: ImportOptions) -> Result<ImportedProfile, ImportError> {
    let threads = options.threads.unwrap_or_else(cpu_count);
    reading::read(reader, Import::new(options), threads.get())
}
