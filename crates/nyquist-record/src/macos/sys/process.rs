//! Processes: which there are, and what the system provides about them without rights to their memory.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::size_of;
use std::ptr;

use super::super::pure::process_status::ProcessStatus;

/// `PROC_ALL_PIDS` and `PROC_PPID_ONLY` (`sys/proc_info.h`).
const ALL: u32 = 1;
const CHILDREN_OF: u32 = 6;
/// The most processes that are listed.
const MAX_PROCESSES: usize = 1 << 16;
/// `PROC_PIDPATHINFO_MAXSIZE`, above which `proc_pidpath` refuses.
const MAX_PATH_LEN: usize = 4096;
/// The longest name that `proc_name` gives (`2 * MAXCOMLEN`), with its final zero.
const MAX_NAME_LEN: usize = 33;
/// The size of `kinfo_proc` (`sys/sysctl.h`), and where it has what is read: the members of `extern_proc`
/// (`sys/proc.h`) `p_starttime`, `p_flag`, `p_stat`, and `p_pid`, and of `eproc` `e_ppid`.
const KINFO: usize = 648;
const SECONDS: usize = 0;
const MICROSECONDS: usize = 8;
const FLAGS: usize = 32;
const STATE: usize = 36;
const NUMBER: usize = 40;
const PARENT: usize = 560;
/// `P_LP64` and `P_TRANSLATED` (`sys/proc.h`).
const HAS_64_BITS: u32 = 0x4;
const IS_TRANSLATED: u32 = 0x2_0000;
/// `CS_OPS_STATUS` (`sys/codesign.h` of the system's published source).
const CODE_STATUS: c_uint = 0;

unsafe extern "C" {
    fn csops(pid: libc::pid_t, operation: c_uint, data: *mut c_void, size: usize) -> c_int;
}

/// What is known of a process; `None` if there is none.
pub(crate) fn known(pid: u32) -> Option<ProcessStatus> {
    let pid = c_int::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let mut name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid];
    let mut bytes = [0_u8; KINFO];
    let mut len = bytes.len();
    // SAFETY: `name` has 4 numbers. `bytes` has `len` bytes, of which sysctl(3) writes no more. All pointers live
    // through the call, and no new value is given.
    let result = unsafe {
        libc::sysctl(name.as_mut_ptr(), 4, bytes.as_mut_ptr().cast(), &raw mut len, ptr::null_mut(), 0)
    };
    // For a process that is not there, nothing is written, and the length is 0.
    if result != 0 || len != KINFO || u32_at(&bytes, NUMBER)? != pid as u32 {
        return None;
    }
    let seconds = u64::from_le_bytes(*bytes.get(SECONDS..)?.first_chunk()?);
    let (flags, state) = (u32_at(&bytes, FLAGS)?, u32::from(*bytes.get(STATE)?));
    Some(ProcessStatus {
        began: seconds.saturating_mul(1_000_000).saturating_add(u32_at(&bytes, MICROSECONDS)?.into()),
        parent: u32_at(&bytes, PARENT)?,
        has_ended: state == libc::SZOMB,
        has_64_bits: flags & HAS_64_BITS != 0,
        is_translated: flags & IS_TRANSLATED != 0,
    })
}

/// The session of a process.
pub(crate) fn session(pid: u32) -> Option<u32> {
    // SAFETY: the call takes and gives numbers; -1 is an error.
    u32::try_from(unsafe { libc::getsid(number(pid)) }).ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// All processes.
pub(crate) fn all() -> Vec<u32> {
    list(ALL, 0)
}

/// The processes whose parent is this one.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    list(CHILDREN_OF, pid)
}

fn list(kind: u32, which: u32) -> Vec<u32> {
    let mut pids: Vec<c_int> = vec![0; 128];
    loop {
        let room = c_int::try_from(pids.len() * size_of::<c_int>()).unwrap_or(c_int::MAX);
        // SAFETY: `pids` has `room` bytes, of which the call writes no more, and returns how many it has written.
        let bytes = unsafe { libc::proc_listpids(kind, which, pids.as_mut_ptr().cast(), room) };
        let count = usize::try_from(bytes).unwrap_or_default() / size_of::<c_int>();
        // A full buffer may lack some.
        if count < pids.len() || pids.len() >= MAX_PROCESSES {
            pids.truncate(count);
            return pids
                .into_iter()
                .filter_map(|pid| u32::try_from(pid).ok())
                .filter(|pid| *pid > 0)
                .collect();
        }
        pids.resize(pids.len() * 4, 0);
    }
}

/// The path of a process's program.
pub(crate) fn path(pid: u32) -> Option<String> {
    let mut bytes = vec![0_u8; MAX_PATH_LEN];
    // SAFETY: `bytes` has that many bytes, of which the call writes no more, and returns how many it has written.
    let len = unsafe { libc::proc_pidpath(number(pid), bytes.as_mut_ptr().cast(), bytes.len() as u32) };
    text(&bytes, len)
}

/// The name of a process, of 32 bytes at most.
pub(crate) fn name(pid: u32) -> Option<String> {
    let mut bytes = [0_u8; MAX_NAME_LEN];
    // SAFETY: `bytes` has that many bytes, of which the call writes no more, and returns how many it has written.
    let len = unsafe { libc::proc_name(number(pid), bytes.as_mut_ptr().cast(), bytes.len() as u32) };
    text(&bytes, len)
}

fn text(bytes: &[u8], len: c_int) -> Option<String> {
    let bytes = bytes.get(..usize::try_from(len).ok()?)?;
    let bytes = bytes.split(|byte| *byte == 0).next()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// How a process's code is signed, as flags of the kernel (`CS_…`).
pub(crate) fn code_flags(pid: u32) -> Option<u32> {
    let mut flags = 0_u32;
    // SAFETY: `flags` lives through the call and has the size that is stated; the operation writes only it.
    let result = unsafe { csops(number(pid), CODE_STATUS, (&raw mut flags).cast(), size_of::<u32>()) };
    (result == 0).then_some(flags)
}

fn number(pid: u32) -> c_int {
    c_int::try_from(pid).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let own = std::process::id();
        let it = known(own).unwrap();
        assert!(it.began > 0 && !it.has_ended && it.has_64_bits);
        assert_eq!(it.parent, std::os::unix::process::parent_id());
        assert!(session(own).is_some());
        assert!(all().contains(&own) && path(own).is_some() && name(own).is_some());
        assert!(children(own).is_empty());
        assert_eq!(known(0x7fff_fff0), None);
    }
}
