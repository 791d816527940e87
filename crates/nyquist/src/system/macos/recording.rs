//! The commands that record and measure.

pub(crate) use super::setup::run as setup;
pub(crate) use crate::system::suspending::recording::{
    MEASURES, Plan, check_limits, doctor, list, stat, top,
};

/// Whether this machine or this program can be made ready for recording.
pub(crate) const HAS_SETUP: bool = true;
