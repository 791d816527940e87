//! The limit of memory for reading files, and the message when it is exceeded.
//!
//! A small file can contain a large profile: compressed, or with few bytes per row. So files of all
//! formats are read under a system limit for the whole process. If an allocation fails, the allocator
//! prints a message and ends the process. A recorder never has this limit, because its recording would be
//! lost. Its readers of perf maps, jitdumps and modules track their memory themselves, and leave out data
//! that is too large.

use crate::failure::Failure;
use crate::printer::{self, Printer};
use crate::sys::{self, DataLimit};
use nyquist_perf::Budget;
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// A number of bytes in command-line syntax: 1073741824, 512M, 4G.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
        let unit = UNITS.iter().find_map(|(unit, shift)| {
            let number = text.strip_suffix([*unit, unit.to_ascii_lowercase()])?;
            Some((number, *shift))
        });
        let (number, shift) = unit.unwrap_or((text, 0));
        let bytes = number.parse().ok().and_then(|number: u64| number.checked_mul(1 << shift));
        let bytes = bytes.filter(|bytes| *bytes >= LEAST);
        bytes.map(Self).ok_or_else(|| "not a size from 16M on, such as 512M or 4G".to_owned())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 10 << 30 => write!(f, "{} GiB", bytes >> 30),
            bytes => write!(f, "{} MiB", bytes >> 20),
        }
    }
}

/// The smallest limit, because the program itself needs some megabytes.
const LEAST: u64 = 16 << 20;

/// The limit of the command: the given one, or half of the available memory.
fn limit(asked: Option<Bytes>) -> Bytes {
    asked.unwrap_or_else(|| Bytes((available() / 2).max(LEAST)))
}

/// The budget for files beside a recording: the given one, or a quarter of the available memory, because the
/// recording itself needs memory, too.
pub(crate) fn side_files(asked: Option<Bytes>) -> Budget {
    Budget::new(asked.map_or_else(|| (available() / 4).max(LEAST), |asked| asked.0))
}

/// Limits the memory for modules and their debug info, also in a recorder: the given limit, or a quarter of
/// the available memory.
pub(crate) fn limit_modules(asked: Option<Bytes>) {
    nyquist_resources::limit_files(side_files(asked).most());
}

/// Warns if modules or their debug info exceeded the memory limit.
pub(crate) fn warn_of_missing_names(printer: Printer) {
    let budget = nyquist_resources::of_files();
    if budget.was_refused() {
        let most = Bytes(budget.most());
        printer.warn(format_args!(
            "some names are missing: symbols and debug info would take more than {most} of memory (--max-memory allows more)"
        ));
    }
}

/// A guard that limits the process while it exists. It is used while reading, but not while writing or
/// serving, and not for started programs.
#[derive(Debug)]
#[must_use]
pub(crate) struct MemoryLimit(());

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        sys::lift_data();
    }
}

/// Sets the limit of the process. If it is exceeded, the process ends with a message that names the file.
pub(crate) fn hold(path: &Path, asked: Option<Bytes>) -> MemoryLimit {
    let limit = limit(asked);
    let failure = Failure::new(format!(
        "cannot load {}: it needs more than {limit} of memory to be read",
        path.display()
    ));
    let failure =
        failure.hint("--max-memory SIZE, or NYQUIST_MAX_MEMORY, allows more, as in --max-memory 8G");
    sys::hold_data(DataLimit { bytes: limit.0, said: printer::failure_text(&failure) });
    MemoryLimit(())
}

/// The least of the memory of this machine, the limit of the control group, and the limit of the address
/// space.
fn available() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| of_group(&text));
    [machine, group, sys::address_space()].into_iter().flatten().min().unwrap_or(4 << 30)
}

/// The machine's memory according to `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the control group and its parents (cgroups(7)).
fn of_group(groups: &str) -> Option<u64> {
    let read = |folder: &Path, file| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let places = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        Some((Path::new(root), path.trim_start_matches('/'), file))
    });
    let limits = places.flat_map(|(root, path, file)| {
        let around = Path::new(path).ancestors().filter_map(|part| read(&root.join(part), file));
        around.collect::<Vec<_>>()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_powers_of_two() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(text.parse::<Bytes>().ok(), expected.map(Bytes), "{text}");
        };
        check("67108864", Some(64 << 20));
        check("512M", Some(512 << 20));
        check("2g", Some(2 << 30));
        check("1T", Some(1 << 40));
        for text in ["", "M", "-1G", "1.5G", "15M", "17000000000000000000T", "4 G", "all"] {
            check(text, None);
        }
        assert_eq!(Bytes(512 << 20).to_string(), "512 MiB");
        assert_eq!(Bytes(12 << 30).to_string(), "12 GiB");
    }

    #[test]
    fn the_machines_memory_is_what_the_kernel_says() {
        assert_eq!(total("MemTotal:       24683648 kB\nMemFree: 1 kB\n"), Some(24_683_648 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(available() >= LEAST);
    }
}
