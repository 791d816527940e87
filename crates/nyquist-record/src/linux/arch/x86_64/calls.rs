//! The numbers of system calls (`arch/x86/entry/syscalls/syscall_64.tbl`).

use crate::linux::thread_state::SystemCall;

/// The number of the call that replaces an older one with the same kind of wait. The first two arguments are
/// the same, if it has any, and a timeout is in the same position.
pub(crate) fn modern(number: i64) -> i64 {
    match number {
        libc::SYS_poll => libc::SYS_ppoll,
        libc::SYS_select => libc::SYS_pselect6,
        libc::SYS_epoll_wait => libc::SYS_epoll_pwait,
        libc::SYS_pause => libc::SYS_rt_sigsuspend,
        libc::SYS_vfork => libc::SYS_wait4,
        libc::SYS_open => libc::SYS_openat,
        libc::SYS_stat => libc::SYS_newfstatat,
        libc::SYS_unlink => libc::SYS_unlinkat,
        libc::SYS_rename => libc::SYS_renameat2,
        libc::SYS_mkdir => libc::SYS_mkdirat,
        number => number,
    }
}

/// The argument of a call that opens a file which has the address of its path.
pub(crate) fn path_argument(call: SystemCall) -> u64 {
    call.arguments[usize::from(call.number != libc::SYS_open)]
}

/// The numbers and the names of all calls, for `call_names.rs`.
pub(crate) const NAMES: &str = include_str!("calls.txt");

#[cfg(test)]
mod tests {
    use super::modern;

    #[test]
    fn older_calls_wait_as_those_in_their_place() {
        assert_eq!([232, 7, 0].map(modern), [281, 271, 0]);
    }
}
