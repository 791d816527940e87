//! The ids and capabilities of this process or of one of its threads (credentials(7), capabilities(7)).
//!
//! Linux keeps them for each thread. The wrappers of the C library change all threads of a process (nptl(7));
//! the system calls themselves change only the calling thread.

use std::{io, ptr};

use super::{check, check_long};

/// The capabilities of a thread, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) effective: u64,
    pub(crate) permitted: u64,
    pub(crate) inheritable: u64,
}

/// `_LINUX_CAPABILITY_VERSION_3` (`linux/capability.h`): 64 bits in two halves.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    /// Zero means the calling thread.
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityHalf {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

impl Capabilities {
    /// The capabilities of the calling thread.
    pub(crate) fn of_thread() -> io::Result<Self> {
        let mut header = CapabilityHeader { version: VERSION, pid: 0 };
        let mut halves = [CapabilityHalf::default(); 2];
        // SAFETY: both pointers are to live values with this version's layout, to which the call writes.
        check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) })?;
        let whole = |part: fn(&CapabilityHalf) -> u32| {
            u64::from(part(&halves[1])) << 32 | u64::from(part(&halves[0]))
        };
        Ok(Self {
            effective: whole(|half| half.effective),
            permitted: whole(|half| half.permitted),
            inheritable: whole(|half| half.inheritable),
        })
    }

    /// Sets the capabilities of the calling thread.
    pub(crate) fn set_of_thread(self) -> io::Result<()> {
        let mut header = CapabilityHeader { version: VERSION, pid: 0 };
        let half = |shift: u32| CapabilityHalf {
            effective: (self.effective >> shift) as u32,
            permitted: (self.permitted >> shift) as u32,
            inheritable: (self.inheritable >> shift) as u32,
        };
        let halves = [half(0), half(32)];
        // SAFETY: as above; the call only reads the halves.
        check_long(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) }).map(|_| ())
    }
}

/// The effective user of this process.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The user and the group with whose rights the calling thread accesses files.
pub(crate) fn file_ids_of_thread() -> (u32, u32) {
    // SAFETY: an invalid id changes nothing, and the calls return the current ids (setfsuid(2)).
    let ids = unsafe { (libc::setfsuid(libc::uid_t::MAX), libc::setfsgid(libc::gid_t::MAX)) };
    (ids.0 as u32, ids.1 as u32)
}

/// Makes the calling thread access files with the rights of a user and a group.
pub(crate) fn set_file_ids_of_thread(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: the calls take plain numbers. They do not report success.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
    if file_ids_of_thread() == (uid, gid) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

/// The supplementary groups of the calling thread.
pub(crate) fn groups_of_thread() -> io::Result<Vec<u32>> {
    // SAFETY: without room, the call returns the number and writes nothing.
    let count = check(unsafe { libc::getgroups(0, ptr::null_mut()) })?;
    let mut groups = vec![0; count as usize];
    // SAFETY: `groups` has room for `count` numbers.
    let count = check(unsafe { libc::getgroups(count, groups.as_mut_ptr()) })?;
    groups.truncate(count as usize);
    Ok(groups)
}

/// Sets the supplementary groups of the calling thread.
pub(crate) fn set_groups_of_thread(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the pointer and the count are those of a live list. The C library's wrapper would set them for
    // all threads.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    check_long(result).map(|_| ())
}

/// Permanently changes the process with all its threads to another user: the real, effective, saved and file
/// system ids.
pub(crate) fn set_ids_of_process(uid: u32, gid: u32, groups: &[u32]) -> io::Result<()> {
    // SAFETY: the pointer and the count are those of a live list; the others are plain numbers. The C library
    // made all threads of this process, so its wrappers reach them.
    unsafe {
        check(libc::setgroups(groups.len(), groups.as_ptr()))?;
        check(libc::setresgid(gid, gid, gid))?;
        check(libc::setresuid(uid, uid, uid))?;
    }
    Ok(())
}

/// The real, effective and saved users of this process, and its groups.
pub(crate) fn ids_of_process() -> io::Result<([u32; 3], [u32; 3])> {
    let (mut users, mut groups) = ([0; 3], [0; 3]);
    let [real, effective, saved] = &mut users;
    // SAFETY: the pointers are to live numbers, which the call writes to.
    check(unsafe { libc::getresuid(real, effective, saved) })?;
    let [real, effective, saved] = &mut groups;
    // SAFETY: as above.
    check(unsafe { libc::getresgid(real, effective, saved) })?;
    Ok((users, groups))
}

/// Whether other processes of the same user may read this process's memory and take its descriptors
/// (`PR_SET_DUMPABLE`).
pub(crate) fn is_dumpable() -> bool {
    // SAFETY: the call only reads an attribute of this process.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE) == 1 }
}

/// Sets whether they may do so.
pub(crate) fn set_dumpable(dumpable: bool) -> io::Result<()> {
    // SAFETY: the call takes a plain number.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_ulong::from(dumpable)) }).map(|_| ())
}
