//! What a thread waits for at a futex (futex(2)), as far as the call's arguments and the memory say it. The
//! functions on its stack, which get their names later, say more.

use std::path::Path;

use nyquist_convert::event::{Pid, Tid, WaitReason};

use super::cause::WaitCause;
use crate::linux::proc;
use crate::linux::target_access;
use crate::linux::thread_state::SystemCall;

/// The operations, without their flags.
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const WAIT_REQUEUE_PI: u64 = 11;
const LOCK_PI2: u64 = 13;
const OPERATION: u64 = 0x7f;
/// The flag of a futex that only one process uses.
const PRIVATE: u64 = 0x80;

/// The value that Rust's `thread::park` waits with.
const RUST_PARKED: u32 = u32::MAX;

/// The futex word of a contended glibc mutex.
const CONTENDED: u32 = 2;
/// The part of a word that has a thread's id: of robust mutexes, and of those that inherit priorities.
const OWNER: u32 = 0x3fff_ffff;

/// What a thread of a process waits for in the call `futex`.
pub(super) fn cause((pid, tid): (u32, u32), call: SystemCall) -> WaitCause {
    let [address, operation, value, ..] = call.arguments;
    // The upper half of the register has no meaning.
    let reason = reason(pid, operation, value as u32);
    let object = Some(format!("{address:#x}").into());
    WaitCause { reason, object, holder: holder((pid, tid), address) }
}

fn reason(pid: u32, operation: u64, value: u32) -> WaitReason {
    let is_private = operation & PRIVATE != 0;
    match operation & OPERATION {
        LOCK_PI | LOCK_PI2 => WaitReason::Lock,
        WAIT_REQUEUE_PI => WaitReason::ConditionVariable,
        WAIT_BITSET if is_private && value == RUST_PARKED => WaitReason::Park,
        // The kernel clears the id of a thread that ends. glibc up to 2.42 waits with it.
        WAIT | WAIT_BITSET if !is_private && thread_numbered(pid, value).is_some() => WaitReason::ThreadEnd,
        _ => WaitReason::Futex,
    }
}

/// The thread that holds the lock of a futex, if that is a mutex of glibc, or a read-write lock that a thread
/// writes to. Whether it is one, only the functions on the stack can say.
fn holder((pid, tid): (u32, u32), address: u64) -> Option<Tid> {
    let mut bytes = [0; 20];
    let len = target_access::read(pid, address, &mut bytes);
    let mut words = [0; 5];
    for (word, bytes) in words.iter_mut().zip(bytes.get(..len)?.chunks_exact(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().ok()?);
    }
    let holder = thread_numbered(pid, candidate(words))?;
    (holder != tid).then_some(Tid(holder))
}

/// The word that may be the id of the holder, given those from the futex on.
fn candidate([futex, second, third, fourth, fifth]: [u32; 5]) -> u32 {
    // `struct __pthread_mutex_s`: `__lock`, `__count`, `__owner`.
    if futex == CONTENDED || futex & OWNER == third {
        return third;
    }
    // `struct __pthread_rwlock_arch_t`: `__wrphase_futex`, `__writers_futex`, `__pad3`, `__pad4`, `__cur_writer`.
    // A thread waits at one of the first two.
    match [second, third, fourth, fifth] {
        [0, 0, writer, _] if writer != 0 => writer,
        [_, 0, 0, writer] => writer,
        _ => 0,
    }
}

/// The thread of a process that has this id in the process's own namespace.
fn thread_numbered(pid: u32, id: u32) -> Option<u32> {
    /// In larger processes no thread is looked for.
    const MAX_THREADS: usize = 4096;
    if id == 0 {
        return None;
    }
    if !proc::is_in_inner_namespace(pid) {
        return Path::new(&format!("/proc/{pid}/task/{id}")).exists().then_some(id);
    }
    let threads = proc::threads(Pid(pid)).ok()?;
    let threads = Some(threads).filter(|threads| threads.len() <= MAX_THREADS)?;
    threads.into_iter().find(|tid| proc::innermost_id(*tid) == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_of_glibc_names_its_holder() {
        let pid = std::process::id();
        for mutex in [[CONTENDED, 0, pid, 0, 0], [0x8000_0000 | pid, 0, pid, 0, 0]] {
            let address = mutex.as_ptr() as u64;
            assert_eq!(holder((pid, u32::MAX), address), Some(Tid(pid)));
            assert_eq!(holder((pid, pid), address), None, "nobody waits for itself");
        }
        for other in [[1, 0, pid, 0, 0], [CONTENDED, 0, 0, 0, 0], [CONTENDED, 0, u32::MAX, 0, 0]] {
            assert_eq!(holder((pid, u32::MAX), other.as_ptr() as u64), None, "{other:?}");
        }
    }

    /// A reader waits at the first futex of the lock, a writer at the second one.
    #[test]
    fn a_lock_that_is_written_to_names_its_writer() {
        let pid = std::process::id();
        let lock = [3, 3, 0, 0, pid, 0];
        for at in [0, 1] {
            assert_eq!(holder((pid, u32::MAX), lock[at..].as_ptr() as u64), Some(Tid(pid)), "{at}");
        }
        let read = [3, 3, 0, 0, 0, 0];
        assert_eq!(holder((pid, u32::MAX), read.as_ptr() as u64), None);
    }

    #[test]
    fn the_arguments_tell_some_waits_apart() {
        let pid = std::process::id();
        assert_eq!(reason(pid, LOCK_PI | PRIVATE, 0), WaitReason::Lock);
        assert_eq!(reason(pid, WAIT_REQUEUE_PI, 0), WaitReason::ConditionVariable);
        assert_eq!(reason(pid, WAIT_BITSET | PRIVATE, RUST_PARKED), WaitReason::Park);
        assert_eq!(reason(pid, WAIT_BITSET | 0x100, pid), WaitReason::ThreadEnd);
        assert_eq!(reason(pid, WAIT_BITSET | PRIVATE, pid), WaitReason::Futex);
        assert_eq!(reason(pid, WAIT | PRIVATE, CONTENDED), WaitReason::Futex);
    }
}
