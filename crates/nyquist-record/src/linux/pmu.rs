//! Machines with several kinds of cores have a counting unit for each kind. Finds the one that counts a CPU's
//! cycles.

use std::fs;
use std::path::Path;

use crate::parse_cpu_list;

/// The folder of the kernel's counting units.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// The units of machines with several kinds of cores; empty if all cores are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreUnits {
    units: Vec<CountingUnit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CountingUnit {
    cpus: Vec<u32>,
    /// The unit's number in `perf_event_attr.config`.
    kind: u32,
}

impl CoreUnits {
    /// The units of this machine.
    pub(crate) fn of_machine() -> Self {
        Self::in_folder(Path::new(DEVICES))
    }

    /// Units of cores have names such as `cpu_core` and `cpu_atom`, and a list of their CPUs.
    fn in_folder(devices: &Path) -> Self {
        let entries = fs::read_dir(devices).into_iter().flatten().flatten();
        let of_cores = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"cpu_"));
        Self { units: of_cores.filter_map(|entry| CountingUnit::read(&entry.path())).collect() }
    }

    /// The number of the unit of a CPU; `None` if all cores are alike.
    pub(crate) fn kind_of(&self, cpu: u32) -> Option<u32> {
        self.units.iter().find(|unit| unit.cpus.contains(&cpu)).map(|unit| unit.kind)
    }
}

impl CountingUnit {
    fn read(folder: &Path) -> Option<Self> {
        let cpus = parse_cpu_list(&fs::read_to_string(folder.join("cpus")).ok()?)?;
        let kind = fs::read_to_string(folder.join("type")).ok()?.trim().parse().ok()?;
        Some(Self { cpus, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, units: &[(&str, &[(&str, &str)])]) -> CoreUnits {
        let root = std::env::temp_dir().join(format!("nyquist-pmu-{name}-{}", std::process::id()));
        for (unit, files) in units {
            fs::create_dir_all(root.join(unit)).unwrap();
            for (file, content) in *files {
                fs::write(root.join(unit).join(file), content).unwrap();
            }
        }
        let found = CoreUnits::in_folder(&root);
        fs::remove_dir_all(&root).unwrap();
        found
    }

    #[test]
    fn a_cpu_has_the_unit_of_its_kind_of_core() {
        let units = folder(
            "hybrid",
            &[
                ("cpu_core", &[("cpus", "0-3\n"), ("type", "4\n")]),
                ("cpu_atom", &[("cpus", "4-7\n"), ("type", "10\n")]),
                ("software", &[("type", "1\n")]),
            ],
        );
        assert_eq!(
            [0, 3, 4, 7, 8].map(|cpu| units.kind_of(cpu)),
            [Some(4), Some(4), Some(10), Some(10), None]
        );
    }

    #[test]
    fn cores_that_are_alike_need_no_unit() {
        let units = folder("alike", &[("cpu", &[("type", "4\n")]), ("cpu_x", &[("type", "5\n")])]);
        assert_eq!(units, CoreUnits::default());
        assert_eq!(units.kind_of(0), None);
    }
}
