//! A description of this machine, for the profile's information panel.

use super::arm_cores;
use nyquist_profile::{ExtraInfo, Meta};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Fills in the known properties of the machine.
pub(crate) fn describe(meta: &mut Meta) {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // It is in the title of the front end's page, between the program and the date.
    meta.oscpu = Some(short_system(&release));
    let line = |label: &str, value: &str| ExtraInfo {
        section: "Machine".to_owned(),
        label: label.to_owned(),
        value: value.to_owned(),
    };
    let system = value(&release, "PRETTY_NAME", '=').map(|name| line("System", name.trim_matches('"')));
    meta.extra.extend(system.into_iter().chain([line("Kernel", &format!("Linux {}", kernel.trim()))]));
    meta.platform = Some("Linux".to_owned());
    meta.abi = Some(format!("{}-gcc3", std::env::consts::ARCH));
    meta.cpu_name = value(&cpus, "model name", ':').map(str::to_owned).or_else(|| arm_cores::names(&cpus));
    meta.logical_cpus = u32::try_from(cpus.lines().filter(|line| line.starts_with("processor")).count()).ok();
    meta.physical_cpus =
        physical_cpus(&cpus).or_else(|| physical_cpus_in(Path::new("/sys/devices/system/cpu")));
    meta.main_memory = value(&memory, "MemTotal", ':')
        .and_then(|size| size.strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024);
}

/// The system's name and version in two words, such as `Debian 12`.
fn short_system(release: &str) -> String {
    let value =
        |key| value(release, key, '=').map(|text| text.trim_matches('"')).filter(|text| !text.is_empty());
    let Some(name) = value("NAME") else { return "Linux".to_owned() };
    let name =
        ["GNU/Linux", "Linux"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).trim_end();
    let name = if name.is_empty() { "Linux" } else { name };
    value("VERSION_ID").map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

/// The first value of a key in lines of `key separator value`.
fn value<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(separator));
    pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim()).next()
}

/// The number of cores: distinct pairs of package and core.
fn physical_cpus(cpuinfo: &str) -> Option<u32> {
    let cores: BTreeSet<_> = cpuinfo
        .split("\n\n")
        .filter_map(|cpu| Some((value(cpu, "physical id", ':')?, value(cpu, "core id", ':')?)))
        .collect();
    u32::try_from(cores.len()).ok().filter(|&count| count > 0)
}

/// The same from the folders of `/sys/devices/system/cpu`, if `/proc/cpuinfo` lacks it, as on 64-bit ARM.
fn physical_cpus_in(folder: &Path) -> Option<u32> {
    let topology = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path().join("topology"));
    let number = |topology: &Path, name: &str| fs::read_to_string(topology.join(name)).ok();
    let cores: BTreeSet<_> = topology
        .filter_map(|at| {
            Some((number(&at, "physical_package_id")?, number(&at, "cluster_id"), number(&at, "core_id")?))
        })
        .collect();
    u32::try_from(cores.len()).ok().filter(|&count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: 0\n\n\
                           processor\t: 1\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: 0\n\n\
                           processor\t: 2\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: 1\n";

    #[test]
    fn a_system_is_called_by_two_words() {
        let check = |release: &str, expected: &str| assert_eq!(short_system(release), expected, "{release}");
        let debian =
            "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\n";
        check(debian, "Debian 12");
        check("NAME=Fedora Linux\nVERSION_ID=42\n", "Fedora 42");
        check("NAME=\"Arch Linux\"\n", "Arch");
        check("NAME=Linux\nVERSION_ID=\n", "Linux");
        check("", "Linux");
    }

    #[test]
    fn cores_are_counted_once_in_folders_too() {
        let root = std::env::temp_dir().join(format!("nyquist-topology-{}", std::process::id()));
        for (cpu, core) in [("cpu0", "0"), ("cpu1", "0"), ("cpu2", "1")] {
            let folder = root.join(cpu).join("topology");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("physical_package_id"), "0\n").unwrap();
            fs::write(folder.join("core_id"), core).unwrap();
        }
        fs::create_dir_all(root.join("cpufreq")).unwrap();
        let found = physical_cpus_in(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((found, physical_cpus_in(&root)), (Some(2), None));
    }

    #[test]
    fn cores_are_counted_once() {
        assert_eq!(physical_cpus(CPUINFO), Some(2));
        assert_eq!(physical_cpus(""), None);
        assert_eq!(value(CPUINFO, "model name", ':'), Some("Fast CPU"));
    }
}
