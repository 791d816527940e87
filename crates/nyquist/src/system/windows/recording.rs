//! The commands that record and measure.

use crate::args::{DoctorArgs, ListArgs, RecordArgs, SetupArgs, StatArgs, TopArgs};
use crate::failure::Failure;

/// `nyquist record`.
pub(crate) fn record(_args: &RecordArgs) -> Result<u8, Failure> {
    Err(only_on_linux("record"))
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

/// `nyquist doctor`.
pub(crate) fn doctor(_args: &DoctorArgs) -> Result<u8, Failure> {
    Err(only_on_linux("doctor"))
}

/// `nyquist setup`.
pub(crate) fn setup(_args: SetupArgs) -> Result<u8, Failure> {
    Err(only_on_linux("setup"))
}

fn only_on_linux(command: &str) -> Failure {
    Failure::new(format!("`nyquist {command}` is for Linux, and is not there on Windows yet"))
        .hint("docs/platforms.md says what there is on each system")
}
