//! The result of a recording, for the steps that follow.

use super::run::Run;
use nyquist_convert::ConversionResult;

/// The result of the recording.
pub(crate) struct RecordingResult {
    /// The profile without names, and what was counted.
    pub(crate) finished: ConversionResult,
    /// All runs together.
    pub(crate) runs: Run,
    /// The names of the additional events.
    pub(crate) events: Vec<String>,
    /// The command lines of the attached processes.
    pub(crate) command_lines: String,
    /// Whether the recorder could read all processes.
    pub(crate) may_read_other_processes: bool,
}
