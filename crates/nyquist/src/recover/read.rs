//! Reads a recording.

use nyquist_spool::folder::AbandonedSpool;
use nyquist_spool::{ReadRecording, RecoveredTables, read_recording};

/// Reads a recording. `tables` are those that its records go into.
pub(super) fn read(spool: &AbandonedSpool, tables: fn() -> RecoveredTables) -> Result<ReadRecording, String> {
    let files = spool.segments().map_err(|error| error.to_string())?;
    read_recording(files, tables).map_err(|error| error.to_string())
}
