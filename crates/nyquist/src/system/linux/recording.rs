//! The commands that record and measure.

pub(crate) use super::agent::run as agent;
pub(crate) use super::ctl::run as ctl;
pub(crate) use super::doctor::run as doctor;
pub(crate) use super::flight::SaveSignal;
pub(crate) use super::list::run as list;
pub(crate) use super::record::{Plan, check_limits};
pub(crate) use super::recover::run as recover;
pub(crate) use super::setup::run as setup;
pub(crate) use super::stat::run as stat;
pub(crate) use super::top::run as top;
