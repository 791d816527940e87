//! The CPUs that exist, regardless of this process's own affinity mask.

use std::{fs, io};

use crate::cpu_list::parse_cpu_list;

/// The CPUs that are online, ascending (`/sys/devices/system/cpu/online`).
pub(crate) fn online() -> io::Result<Vec<u32>> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_cpu_list(&list).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("`{}` is not a list of CPUs", list.trim()))
    })
}
