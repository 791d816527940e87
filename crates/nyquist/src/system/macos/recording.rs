//! The commands that record and measure.

pub(crate) use super::setup::run as setup;
pub(crate) use crate::system::suspending::recording::{
    Plan, SaveSignal, agent, check_limits, ctl, doctor, list, recover, stat, top,
};
