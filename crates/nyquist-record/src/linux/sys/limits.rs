//! Resource limits and capabilities of this process.

use std::io;

use super::check;

/// A soft and a hard limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

/// `RLIMIT_NOFILE`: the maximum number of this process's descriptors.
pub(crate) fn descriptors() -> io::Result<Limit> {
    get(libc::RLIMIT_NOFILE)
}

/// Sets `RLIMIT_NOFILE`.
pub(crate) fn set_descriptors(limit: Limit) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: limit.soft, rlim_max: limit.hard };
    // SAFETY: `limit` is a valid rlimit that the call only reads.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(|_| ())
}

/// `RLIMIT_MEMLOCK`: how many bytes of memory this process may lock.
pub(crate) fn locked_memory() -> io::Result<Limit> {
    get(libc::RLIMIT_MEMLOCK)
}

/// `RLIMIT_FSIZE`: the maximum size of files. Writing beyond it ends the process.
pub(crate) fn file_size() -> u64 {
    get(libc::RLIMIT_FSIZE).map_or(u64::MAX, |limit| limit.soft)
}

/// The number of a resource, whose type differs between C libraries.
#[cfg(target_env = "musl")]
type Resource = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Resource = libc::__rlimit_resource_t;

fn get(resource: Resource) -> io::Result<Limit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call writes to.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    Ok(Limit { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// The size of a page in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf only reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
