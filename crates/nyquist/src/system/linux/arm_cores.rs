//! The names of 64-bit ARM processor cores, for which Linux only reports numbers.

use std::collections::BTreeSet;

/// The vendors, by the implementer's number (Arm Architecture Reference Manual for A-profile, MIDR_EL1).
const IMPLEMENTERS: &[(u32, &str)] = &[
    (0x41, "ARM"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x50, "APM"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0xc0, "Ampere"),
];

/// The cores, by implementer and part (`arch/arm64/include/asm/cputype.h`, and the technical reference
/// manuals of Arm's cores).
const CORES: &[(u32, u32, &str)] = &[
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4c, "Cortex-X1C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x43, 0x0a1, "ThunderX"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan-v110"),
    (0x4e, 0x004, "Carmel"),
    (0x51, 0x001, "Oryon"),
    (0x61, 0x022, "M1 Icestorm"),
    (0x61, 0x023, "M1 Firestorm"),
    (0x61, 0x032, "M2 Blizzard"),
    (0x61, 0x033, "M2 Avalanche"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

/// The names of a machine's kinds of cores, from their numbers in `/proc/cpuinfo`; `None` without such
/// numbers.
pub(crate) fn names(cpuinfo: &str) -> Option<String> {
    let kinds: BTreeSet<(u32, u32)> = cpuinfo
        .split("\n\n")
        .filter_map(|cpu| Some((number(cpu, "CPU implementer")?, number(cpu, "CPU part")?)))
        .collect();
    let names: Vec<String> = kinds.into_iter().map(name).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

fn name((implementer, part): (u32, u32)) -> String {
    let by = IMPLEMENTERS.iter().find(|(number, _)| *number == implementer);
    let by = by.map_or_else(|| format!("implementer {implementer:#04x}"), |(_, name)| (*name).to_owned());
    match CORES.iter().find(|core| (core.0, core.1) == (implementer, part)) {
        Some((_, _, core)) => format!("{by} {core}"),
        None => format!("{by}, part {part:#05x}"),
    }
}

/// A hexadecimal number in the lines of a CPU.
fn number(cpu: &str, key: &str) -> Option<u32> {
    let value = cpu.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))?;
    u32::from_str_radix(value.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::names;

    fn cpu(implementer: &str, part: &str) -> String {
        format!("processor\t: 0\nCPU implementer\t: {implementer}\nCPU architecture: 8\nCPU part\t: {part}\n")
    }

    #[test]
    fn cores_have_names() {
        let of = |cpus: &[(&str, &str)]| {
            let cpus: Vec<String> = cpus.iter().map(|(by, part)| cpu(by, part)).collect();
            names(&cpus.join("\n"))
        };
        assert_eq!(of(&[("0x41", "0xd0c"); 2]).as_deref(), Some("ARM Neoverse-N1"));
        assert_eq!(
            of(&[("0x41", "0xd0b"), ("0x41", "0xd05")]).as_deref(),
            Some("ARM Cortex-A55 and ARM Cortex-A76")
        );
        assert_eq!(of(&[("0x00", "0x051")]).as_deref(), Some("implementer 0x00, part 0x051"));
        assert_eq!(of(&[("0x41", "0x001")]).as_deref(), Some("ARM, part 0x001"));
        assert_eq!(names("processor\t: 0\nmodel name\t: Fast CPU\n"), None);
    }
}
