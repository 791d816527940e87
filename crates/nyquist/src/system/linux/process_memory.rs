//! The memory that this process may have, and its limit.

pub(crate) use super::sys::{DataLimit, clear_limit, map_large_blocks, set_limit};

use super::sys::address_space;
use std::fs;
use std::path::Path;

/// The least of the memory of this machine, the limit of the control group, and the limit of the address
/// space, in bytes.
pub(crate) fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| of_group(&text));
    [machine, group, address_space()].into_iter().flatten().min()
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
    fn the_machines_memory_is_what_the_kernel_says() {
        assert_eq!(total("MemTotal:       24683648 kB\nMemFree: 1 kB\n"), Some(24_683_648 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(available().is_some());
    }
}
