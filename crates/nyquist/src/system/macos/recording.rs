//! The commands that record and measure.

pub(crate) use super::setup::run as setup;
pub(crate) use crate::system::suspending::recording::{
    Plan, agent, check_limits, doctor, list, recover, stat, top,
};
