//! The limit of memory for reading files, and the message when it is exceeded.
//!
//! A small file can contain a large profile: compressed, or with few bytes per row. So files of all
//! formats are read under a system limit for the whole process. If an allocation fails, the allocator
//! prints a message and ends the process. A recorder never has this limit, because its recording would be
//! lost. What it keeps of processes beside the profile, and its readers of perf maps, jitdumps and modules
//! track their memory themselves, and leave out data that is too large.

use crate::failure::Failure;
use crate::printer::{self, Printer};
use crate::system::process_memory::{self, DataLimit};
use nyquist_convert::DEFAULT_PROCESS_MEMORY;
use nyquist_perf::Budget;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A number of bytes in command-line syntax: 1073741824, 512M, 4G.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(u64);

impl Bytes {
    /// The number of bytes.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = size(text).filter(|bytes| *bytes >= MIN_LIMIT);
        bytes.map(Self).ok_or_else(|| "not a size from 16M on, such as 512M or 4G".to_owned())
    }
}

/// A size in command-line syntax, in bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
    const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = UNITS.iter().find_map(|(unit, shift)| {
        let number = text.strip_suffix([*unit, unit.to_ascii_lowercase()])?;
        Some((number, *shift))
    });
    let (number, shift) = unit.unwrap_or((text, 0));
    number.parse().ok().and_then(|number: u64| number.checked_mul(1 << shift))
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 10 << 30 => write!(f, "{} GiB", bytes >> 30),
            bytes => write!(f, "{} MiB", bytes >> 20),
        }
    }
}

/// The memory of an agent for symbols and debug info.
pub(crate) const OF_AGENT: Bytes = Bytes(100 << 20);

/// The smallest limit, because the program itself needs some megabytes.
const MIN_LIMIT: u64 = 16 << 20;

/// The limit of a command that reads a file: the given one, or half of the available memory.
pub(crate) fn limit(requested: Option<Bytes>) -> Bytes {
    requested.unwrap_or_else(|| Bytes((available() / 2).max(MIN_LIMIT)))
}

/// The budget for files beside a recording: the given one, or a quarter of the available memory, because the
/// recording itself needs memory, too.
pub(crate) fn side_files(requested: Option<Bytes>) -> Budget {
    Budget::new(requested.map_or_else(|| (available() / 4).max(MIN_LIMIT), |requested| requested.0))
}

/// The memory for the mappings, arguments and names of recorded processes, in bytes: a quarter of the given limit, but
/// at least the default, as far as the limit allows.
pub(crate) fn of_processes(requested: Option<Bytes>) -> u64 {
    requested.map_or(DEFAULT_PROCESS_MEMORY, |Bytes(most)| (most / 4).max(DEFAULT_PROCESS_MEMORY).min(most))
}

/// Warns if modules or their debug info exceeded the memory limit.
pub(crate) fn warn_of_missing_names(budget: &Budget, printer: Printer) {
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
        process_memory::clear_limit();
    }
}

/// Sets the limit of the process. If it is exceeded, the process ends with a message that names the file.
pub(crate) fn set_limit(path: &Path, requested: Option<Bytes>) -> MemoryLimit {
    let limit = limit(requested);
    let failure = Failure::new(format!(
        "cannot load {}: it needs more than {limit} of memory to be read",
        path.display()
    ));
    let failure =
        failure.hint("--max-memory SIZE, or NYQUIST_MAX_MEMORY, allows more, as in --max-memory 8G");
    process_memory::set_limit(DataLimit { bytes: limit.0, message: printer::failure_text(&failure) });
    MemoryLimit(())
}

/// The memory that this process may have, in bytes.
fn available() -> u64 {
    process_memory::available().unwrap_or(4 << 30)
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
    fn processes_have_a_share_of_the_limit() {
        let share = |most: Option<u64>| of_processes(most.map(|most| Bytes(most << 20))) >> 20;
        assert_eq!([None, Some(64), Some(800), Some(4096)].map(share), [200, 64, 200, 1024]);
    }

    #[test]
    fn there_is_memory() {
        assert!(available() >= MIN_LIMIT);
    }
}
