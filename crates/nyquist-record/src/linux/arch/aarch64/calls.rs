//! The numbers of system calls (`include/uapi/asm-generic/unistd.h`).

/// The number of the call that waits for the same as another one. There are no older ones here, but who waits in `clone` has been
/// made to wait by `vfork` or `posix_spawn`, for a child that has not called exec yet.
pub(crate) fn modern(number: i64) -> i64 {
    match number {
        libc::SYS_clone | libc::SYS_clone3 => libc::SYS_wait4,
        number => number,
    }
}
