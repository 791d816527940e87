//! The signal that asks a recording for a save: there is none on these systems.

use crate::args::RecordArgs;
use crate::failure::Failure;

/// The signal that asks for a save. There is none here.
pub(crate) struct SaveSignal;

impl SaveSignal {
    /// There is nothing to take over.
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(crate) fn take_over(_args: &RecordArgs) -> Result<Option<Self>, Failure> {
        Ok(None)
    }
}
