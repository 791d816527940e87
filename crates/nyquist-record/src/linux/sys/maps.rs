//! Questions about one mapping of a process, in place of the text of all: `PROCMAP_QUERY` (Linux 6.11, `linux/fs.h`).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

use super::check;

/// The question, and the answer behind it, as the kernel has them.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    /// What else it would tell of the mapping.
    rest: [u64; 8],
}

/// Only a mapping that can be written to is an answer.
const WRITABLE: u64 = 2;

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u32 = 3 << 30 | (size_of::<Query>() as u32) << 16 | (b'f' as u32) << 8 | 0x11;

/// The mapping around an address that can be written to, of the process whose `/proc/PID/maps` this is; `None` where there is none.
///
/// # Errors
/// Where the kernel does not answer such questions, or the process is gone.
pub(crate) fn writable_at(maps: &File, address: u64) -> io::Result<Option<Range<u64>>> {
    let size = size_of::<Query>() as u64;
    let mut query = Query { size, flags: WRITABLE, address, ..Query::default() };
    // SAFETY: the call reads and writes no more than `query`, which has the size that the number of the call and its first member
    // say, and no address of memory to write a name or a build id to.
    match check(unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) }) {
        Ok(_) => Ok(Some(query.start..query.end)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
