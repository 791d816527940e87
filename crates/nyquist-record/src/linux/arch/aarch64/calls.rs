//! The numbers of system calls (`include/uapi/asm-generic/unistd.h`).

use crate::linux::thread_state::SystemCall;

/// The number of the call with the same kind of wait. There are no older calls here. But a thread that waits
/// in `clone` has called `vfork` or `posix_spawn`, and waits for a child that has not called exec yet.
pub(crate) fn modern(number: i64) -> i64 {
    match number {
        libc::SYS_clone | libc::SYS_clone3 => libc::SYS_wait4,
        number => number,
    }
}

/// The argument of a call that opens a file which has the address of its path.
pub(crate) fn path_argument(call: SystemCall) -> u64 {
    call.arguments[1]
}

/// The numbers and the names of all calls, for `call_names.rs`.
pub(crate) const NAMES: &str = include_str!("calls.txt");
