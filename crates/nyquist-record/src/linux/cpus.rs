//! The CPUs that exist, whatever this process's own affinity mask allows.

use std::{fs, io};

/// The CPUs that are online, ascending (`/sys/devices/system/cpu/online`).
pub(crate) fn online() -> io::Result<Vec<u32>> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_list(&list).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("`{}` is no list of CPUs", list.trim()))
    })
}

/// More CPUs than any kernel can be built for (8,192), so that a list that lies stays small.
const MAX_CPUS: u32 = 1 << 16;

/// Reads a list as the kernel writes it: `0-3,8,10-11`.
pub(crate) fn parse_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::parse_list;

    #[test]
    fn lists_of_cpus_are_read() {
        let check = |list, expected: Option<&[u32]>| {
            assert_eq!(parse_list(list).as_deref(), expected, "{list}");
        };
        check("0\n", Some(&[0]));
        check("0-3\n", Some(&[0, 1, 2, 3]));
        check("0-1,4,6-7", Some(&[0, 1, 4, 6, 7]));
        check("", None);
        check("3-1", None);
        check("0-4294967295", None);
        check("a", None);
    }
}
