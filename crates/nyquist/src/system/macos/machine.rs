//! A description of this machine, for the profile's information panel.

use super::sys::{number, text};
use nyquist_profile::{ExtraInfo, Meta};
use std::env;

/// Fills in the known properties of the machine.
pub(crate) fn describe(meta: &mut Meta) {
    let version = text(c"kern.osproductversion");
    let system = version.map_or_else(|| "macOS".to_owned(), |version| format!("macOS {version}"));
    meta.oscpu = Some(system.clone());
    let line = |label: &str, value: String| ExtraInfo {
        section: "Machine".to_owned(),
        label: label.to_owned(),
        value,
    };
    let kernel = text(c"kern.osrelease").map(|release| line("Kernel", format!("Darwin {release}")));
    let model = text(c"hw.model").map(|model| line("Model", model));
    meta.extra.extend([Some(line("System", system)), kernel, model].into_iter().flatten());
    meta.platform = Some("Macintosh".to_owned());
    meta.abi = Some(format!("{}-gcc3", env::consts::ARCH));
    meta.cpu_name = text(c"machdep.cpu.brand_string");
    let count = |name| number(name).and_then(|count| u32::try_from(count).ok());
    meta.logical_cpus = count(c"hw.logicalcpu");
    meta.physical_cpus = count(c"hw.physicalcpu");
    meta.main_memory = memory();
}

/// The memory of the machine in bytes.
pub(crate) fn memory() -> Option<u64> {
    number(c"hw.memsize")
}
