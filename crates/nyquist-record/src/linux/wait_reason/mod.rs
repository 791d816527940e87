//! What a thread waits for, according to its system call and the descriptors and memory in the arguments.

mod cause;
mod futex;
mod suspension;

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nyquist_convert::ProcessFile;
use nyquist_convert::event::WaitReason;

pub(crate) use cause::WaitCause;

use crate::linux::arch::{call_names, calls};
use crate::linux::target_access;
use crate::linux::thread_state::SystemCall;

/// What a system call waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitedOn {
    /// Nothing that has a name.
    Nothing,
    /// A futex.
    Futex,
    /// The file whose path is at an address.
    Path(u64),
    /// The file of a descriptor.
    Descriptor(u64),
    /// The file of the single descriptor given to `poll`, in a `pollfd` at an address.
    Polled(u64),
}

/// What a thread of a process waits for: what has suspended it, or else what its system call waits for.
pub(crate) fn cause_of_wait(pid: u32, tid: u32, call: Option<SystemCall>) -> WaitCause {
    match suspension::suspension(pid, tid) {
        Some(reason) => WaitCause::some(reason),
        None => what_for(pid, tid, call),
    }
}

/// What a thread of a process waits for in a system call. Without a call, it waits for a page of its memory.
pub(crate) fn what_for(pid: u32, tid: u32, call: Option<SystemCall>) -> WaitCause {
    let Some(call) = call else { return WaitCause::some(WaitReason::Page) };
    let (reason, subject) = by_call(call);
    match subject {
        WaitedOn::Nothing if reason == WaitReason::Other => {
            WaitCause { object: Some(call_name(call.number).into()), ..WaitCause::some(reason) }
        }
        WaitedOn::Nothing => WaitCause::some(reason),
        WaitedOn::Futex => futex::cause((pid, tid), call),
        WaitedOn::Path(address) => of_path((pid, tid), address, reason),
        WaitedOn::Descriptor(number) => of_descriptor(pid, number, reason),
        WaitedOn::Polled(address) => {
            let mut number = [0; 4];
            let len = target_access::read(pid, address, &mut number);
            let number = u64::try_from(i32::from_ne_bytes(number)).ok().filter(|_| len == number.len());
            number.map_or(WaitCause::some(reason), |number| of_descriptor(pid, number, reason))
        }
    }
}

/// The name of a system call, for users.
fn call_name(number: i64) -> String {
    match call_names::name(number) {
        Some(name) => format!("system call {name}"),
        None => format!("system call {number}"),
    }
}

/// The file that a call opens. The path is only shown, never followed.
fn of_path((pid, tid): (u32, u32), address: u64, otherwise: WaitReason) -> WaitCause {
    /// The longest path that is shown.
    const MAX_LEN: usize = 1024;
    let mut bytes = [0; MAX_LEN];
    let len = target_access::read(pid, address, &mut bytes);
    let path = bytes.get(..len).and_then(|bytes| CStr::from_bytes_until_nul(bytes).ok());
    let object = path.filter(|path| !path.is_empty()).map(|path| path.to_string_lossy().into());
    // Both ends of a pipe with a name wait for each other.
    let is_of_pipe = suspension::place(pid, tid).is_some_and(|place| PIPE_OPENING.contains(&place.as_str()));
    let reason = if is_of_pipe { WaitReason::Pipe } else { otherwise };
    WaitCause { object, ..WaitCause::some(reason) }
}

/// The functions of the kernel in which opening a pipe with a name waits.
const PIPE_OPENING: [&str; 2] = ["wait_for_partner", "fifo_open"];

/// The file of a descriptor; `otherwise` is the reason if the file's kind does not determine it.
fn of_descriptor(pid: u32, number: u64, otherwise: WaitReason) -> WaitCause {
    let read = |number| target_access::process_file(pid, None, ProcessFile::Descriptor(number)).ok();
    let Some(link) = u32::try_from(number).ok().and_then(read) else {
        return WaitCause::some(otherwise);
    };
    let link = PathBuf::from(OsString::from_vec(link));
    let reason = by_link(&link).unwrap_or(otherwise);
    WaitCause { object: Some(link.to_string_lossy().into()), ..WaitCause::some(reason) }
}

/// The kind of file that a link in `/proc/PID/fd` names (proc_pid_fd(5)).
fn by_link(link: &Path) -> Option<WaitReason> {
    let name = link.to_str()?;
    if name.starts_with("socket:") {
        Some(WaitReason::Network)
    } else if name.starts_with("pipe:") {
        Some(WaitReason::Pipe)
    } else if name.starts_with("anon_inode:") {
        Some(WaitReason::Events)
    } else if name.starts_with("/dev/pts/") || name.starts_with("/dev/tty") {
        Some(WaitReason::Terminal)
    } else {
        None
    }
}

/// The kind of wait of each system call.
fn by_call(call: SystemCall) -> (WaitReason, WaitedOn) {
    let [first, second, ..] = call.arguments;
    let descriptor = WaitedOn::Descriptor(first);
    match calls::modern(call.number) {
        libc::SYS_futex => (WaitReason::Futex, WaitedOn::Futex),
        SYS_FUTEX_WAIT | SYS_FUTEX_WAITV => (WaitReason::Futex, WaitedOn::Nothing),
        libc::SYS_semop | libc::SYS_semtimedop => (WaitReason::Semaphore, WaitedOn::Nothing),
        libc::SYS_openat | SYS_OPENAT2 => (WaitReason::File, WaitedOn::Path(calls::path_argument(call))),
        libc::SYS_flock | libc::SYS_fcntl => (WaitReason::Lock, descriptor),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => (WaitReason::Sleep, WaitedOn::Nothing),
        // Without descriptors they are used to sleep.
        libc::SYS_ppoll if second == 0 => (WaitReason::Sleep, WaitedOn::Nothing),
        libc::SYS_ppoll if second == 1 => (WaitReason::Events, WaitedOn::Polled(first)),
        libc::SYS_pselect6 if first == 0 => (WaitReason::Sleep, WaitedOn::Nothing),
        libc::SYS_ppoll
        | libc::SYS_pselect6
        | libc::SYS_epoll_pwait
        | SYS_EPOLL_PWAIT2
        | libc::SYS_io_uring_enter
        | libc::SYS_io_getevents => (WaitReason::Events, WaitedOn::Nothing),
        libc::SYS_wait4 | libc::SYS_waitid => (WaitReason::Child, WaitedOn::Nothing),
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => (WaitReason::Signal, WaitedOn::Nothing),
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_connect => (WaitReason::Network, descriptor),
        number if READS_AND_WRITES.contains(&number) => (WaitReason::File, descriptor),
        number if OF_FILES.contains(&number) => (WaitReason::File, WaitedOn::Nothing),
        _ => (WaitReason::Other, WaitedOn::Nothing),
    }
}

/// These have no names in some versions of the C library. Their numbers are the same on all architectures.
const SYS_EPOLL_PWAIT2: i64 = 441;
const SYS_FUTEX_WAITV: i64 = 449;
const SYS_FUTEX_WAIT: i64 = 455;
const SYS_OPENAT2: i64 = 437;

/// The system calls whose first argument is the descriptor that they wait on.
const READS_AND_WRITES: [i64; 21] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_getdents64,
];

/// The system calls that wait for files given by path, or for several files.
const OF_FILES: [i64; 9] = [
    libc::SYS_close,
    libc::SYS_newfstatat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_sync,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
];

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn call(number: i64, arguments: &[u64]) -> SystemCall {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        SystemCall { number, arguments: all }
    }

    #[test]
    fn system_calls_say_what_is_waited_for() {
        let check = |number, arguments: &[u64], expected| {
            assert_eq!(by_call(call(number, arguments)), expected, "{number}");
        };
        check(libc::SYS_futex, &[0x7f00], (WaitReason::Futex, WaitedOn::Futex));
        check(libc::SYS_openat, &[3, 0x7f00], (WaitReason::File, WaitedOn::Path(0x7f00)));
        check(libc::SYS_clock_nanosleep, &[], (WaitReason::Sleep, WaitedOn::Nothing));
        check(libc::SYS_ppoll, &[8, 0], (WaitReason::Sleep, WaitedOn::Nothing));
        check(libc::SYS_ppoll, &[8, 1], (WaitReason::Events, WaitedOn::Polled(8)));
        check(libc::SYS_ppoll, &[8, 2], (WaitReason::Events, WaitedOn::Nothing));
        check(libc::SYS_wait4, &[], (WaitReason::Child, WaitedOn::Nothing));
        check(libc::SYS_read, &[3], (WaitReason::File, WaitedOn::Descriptor(3)));
        check(libc::SYS_getpid, &[], (WaitReason::Other, WaitedOn::Nothing));
    }

    #[test]
    fn links_of_descriptors_tell_their_kind() {
        let check = |link: &str, expected| assert_eq!(by_link(Path::new(link)), expected, "{link}");
        check("socket:[123]", Some(WaitReason::Network));
        check("pipe:[4]", Some(WaitReason::Pipe));
        check("anon_inode:[eventfd]", Some(WaitReason::Events));
        check("/dev/pts/0", Some(WaitReason::Terminal));
        check("/home/pipe:[4]", None);
    }

    #[test]
    fn a_descriptor_is_named_by_its_file() {
        let (pid, file) = (std::process::id(), File::open("/proc/self/exe").unwrap());
        let number = u64::try_from(file.as_raw_fd()).unwrap();
        let found = what_for(pid, pid, Some(call(libc::SYS_fsync, &[number])));
        let path = std::env::current_exe().unwrap();
        assert_eq!((found.reason, found.object.as_deref()), (WaitReason::File, path.to_str()));
        let fds = [u32::try_from(number).unwrap(), 0];
        let polled = call(libc::SYS_ppoll, &[fds.as_ptr() as u64, 1]);
        assert_eq!(what_for(pid, pid, Some(polled)).object.as_deref(), path.to_str());
        let none = what_for(pid, pid, Some(call(libc::SYS_read, &[u64::MAX])));
        assert_eq!(none, WaitCause::some(WaitReason::File));
    }

    #[test]
    fn a_file_that_is_opened_is_named_by_its_path() {
        let (pid, path) = (std::process::id(), c"/a/fifo");
        let at_folder = libc::AT_FDCWD as u64;
        let found = what_for(pid, pid, Some(call(libc::SYS_openat, &[at_folder, path.as_ptr() as u64])));
        assert_eq!((found.reason, found.object.as_deref()), (WaitReason::File, Some("/a/fifo")));
        let none = what_for(pid, pid, Some(call(libc::SYS_openat, &[at_folder, 8])));
        assert_eq!(none, WaitCause::some(WaitReason::File));
    }

    #[test]
    fn a_call_without_a_kind_is_named() {
        let of = |number| what_for(1, 1, Some(call(number, &[]))).object;
        assert_eq!(of(libc::SYS_mq_timedreceive).as_deref(), Some("system call mq_timedreceive"));
        assert_eq!(of(10_000).as_deref(), Some("system call 10000"));
    }

    #[test]
    fn code_outside_of_calls_waits_for_a_page() {
        assert_eq!(what_for(1, 1, None), WaitCause::some(WaitReason::Page));
    }
}
