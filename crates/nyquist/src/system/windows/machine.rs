//! A description of this machine, for the profile's information panel.

use nyquist_profile::Meta;
use std::{env, thread};

/// Fills in the known properties of the machine.
pub(crate) fn describe(meta: &mut Meta) {
    meta.oscpu = Some("Windows".to_owned());
    meta.platform = Some("Windows".to_owned());
    meta.abi = Some(format!("{}-msvc", env::consts::ARCH));
    meta.cpu_name = env::var("PROCESSOR_IDENTIFIER").ok().filter(|name| !name.is_empty());
    meta.logical_cpus =
        thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok());
    meta.main_memory = super::sys::physical();
}
