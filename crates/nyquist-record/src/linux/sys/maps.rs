//! Queries a single mapping of a process, instead of the text of all: `PROCMAP_QUERY` (Linux 6.11,
//! `linux/fs.h`).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

use super::check;

/// The kernel's structure for the query, which is followed by the result.
#[repr(C)]
#[derive(Default)]
struct MappingQuery {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    /// Further information about the mapping.
    rest: [u64; 8],
}

/// Only a writable mapping matches.
const WRITABLE: u64 = 2;

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u32 = 3 << 30 | (size_of::<MappingQuery>() as u32) << 16 | (b'f' as u32) << 8 | 0x11;

/// The writable mapping around an address of the process whose `/proc/PID/maps` this is; `None` if there is
/// none.
///
/// # Errors
/// If the kernel does not support such queries, or the process is gone.
pub(crate) fn writable_at(maps: &File, address: u64) -> io::Result<Option<Range<u64>>> {
    let size = size_of::<MappingQuery>() as u64;
    let mut query = MappingQuery { size, flags: WRITABLE, address, ..MappingQuery::default() };
    // SAFETY: the call reads and writes only `query`, whose size is in the call number and in the first
    // member. No memory address for a name or a build id is set.
    match check(unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) }) {
        Ok(_) => Ok(Some(query.start..query.end)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
