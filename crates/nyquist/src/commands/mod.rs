//! The commands that measure on Linux. On other systems they say so.

#[cfg(not(target_os = "linux"))]
mod linux_only;

#[cfg(windows)]
pub(crate) use linux_only::only_on_linux;
#[cfg(not(target_os = "linux"))]
pub(crate) use linux_only::{agent, ctl, doctor, list, recover, stat, top};

#[cfg(target_os = "linux")]
pub(crate) use crate::{
    agent::run as agent, ctl::run as ctl, doctor::run as doctor, list::run as list, recover::run as recover,
    stat::run as stat, top::run as top,
};
