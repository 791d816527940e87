//! The commands that record and measure.

pub(crate) use super::doctor::run as doctor;
pub(crate) use super::list::run as list;
pub(crate) use super::record::{Plan, check_limits};
pub(crate) use super::setup::run as setup;
pub(crate) use super::stat::run as stat;
pub(crate) use super::top::run as top;

/// Whether there are more commands here than those that record and read profiles.
pub(crate) const MEASURES: bool = true;

/// Whether this machine or this program can be made ready for recording.
pub(crate) const HAS_SETUP: bool = true;
