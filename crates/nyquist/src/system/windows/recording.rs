//! The commands that record and measure.

pub(crate) use crate::system::suspending::recording::{
    Plan, SaveSignal, agent, check_limits, ctl, doctor, list, recover, stat, top,
};

use crate::args::SetupArgs;
use crate::failure::Failure;
use crate::system::suspending::recording::only_on_linux;

/// `nyquist setup`.
pub(crate) fn setup(_args: SetupArgs) -> Result<u8, Failure> {
    Err(only_on_linux("setup"))
}
