//! The answers of commands that are for Linux.

use crate::args::{AgentArgs, CtlArgs, DoctorArgs, ListArgs, RecoverArgs, StatArgs, TopArgs};
use crate::failure::Failure;
use crate::system::NAME;

/// `nyquist agent`.
pub(crate) fn agent(_args: &AgentArgs) -> Result<u8, Failure> {
    Err(only_on_linux("agent"))
}

/// `nyquist ctl`.
pub(crate) fn ctl(_args: &CtlArgs) -> Result<(), Failure> {
    Err(only_on_linux("ctl"))
}

/// `nyquist top`.
pub(crate) fn top(_args: &TopArgs) -> Result<u8, Failure> {
    Err(only_on_linux("top"))
}

/// `nyquist stat`.
pub(crate) fn stat(_args: &StatArgs) -> Result<u8, Failure> {
    Err(only_on_linux("stat"))
}

/// `nyquist list`.
pub(crate) fn list(_args: &ListArgs) -> Result<(), Failure> {
    Err(only_on_linux("list"))
}

/// `nyquist recover`.
pub(crate) fn recover(_args: &RecoverArgs) -> Result<u8, Failure> {
    Err(only_on_linux("recover"))
}

/// `nyquist doctor`.
pub(crate) fn doctor(_args: &DoctorArgs) -> Result<u8, Failure> {
    Err(only_on_linux("doctor"))
}

/// The failure of a command that is for Linux.
pub(crate) fn only_on_linux(command: &str) -> Failure {
    Failure::new(format!("`nyquist {command}` is not available on {NAME}"))
        .hint("docs/platforms.md says what there is on each system")
}
