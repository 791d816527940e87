//! ptrace(2), waiting for traced threads, and reading their memory.

use std::io;
use std::ptr;

use super::{check, check_long};

/// The kernel's number for the set of general registers (`NT_PRSTATUS`, `include/uapi/linux/elf.h`).
const NT_PRSTATUS: libc::c_long = 1;

/// What a traced thread reports: new threads and processes, exec and its end.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// The number of a request, whose type differs between C libraries.
#[cfg(target_env = "musl")]
type PtraceRequest = libc::c_int;
#[cfg(not(target_env = "musl"))]
type PtraceRequest = libc::c_uint;

fn request(what: PtraceRequest, tid: u32, address: libc::c_long, data: libc::c_long) -> io::Result<()> {
    // SAFETY: the requests of this module that come here take numbers and no pointers.
    check_long(unsafe { libc::ptrace(what, tid as libc::pid_t, address, data) }).map(|_| ())
}

/// Makes the calling thread the tracer of a thread, which keeps running.
pub(crate) fn seize(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, libc::c_long::from(OPTIONS))
}

/// Asks a traced thread to stop.
pub(crate) fn interrupt(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Resumes a stopped thread, with a signal or without one (0).
pub(crate) fn resume(tid: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, libc::c_long::from(signal))
}

/// Leaves a thread stopped that job control has stopped, but lets it receive SIGCONT.
pub(crate) fn listen(tid: u32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// The message of a stopped thread's event: the id of the new thread, or the id that it had before exec.
pub(crate) fn event_message(tid: u32) -> io::Result<u32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the data is a pointer to a live word that the call writes to.
    check_long(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid as libc::pid_t, 0, &raw mut message) })?;
    u32::try_from(message).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Reads the registers of a stopped thread in the kernel's order. Returns how many bytes they are: fewer for
/// a 32-bit program.
pub(crate) fn registers<const N: usize>(tid: u32, words: &mut [u64; N]) -> io::Result<usize> {
    let mut area = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words) };
    // SAFETY: the data is a pointer to a live iovec that describes `words`, to which the call writes.
    check_long(unsafe {
        libc::ptrace(libc::PTRACE_GETREGSET, tid as libc::pid_t, NT_PRSTATUS, &raw mut area)
    })?;
    Ok(area.iov_len)
}

/// Sets the registers of a stopped thread.
pub(crate) fn set_registers<const N: usize>(tid: u32, words: &[u64; N]) -> io::Result<()> {
    let area = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size_of_val(words) };
    // SAFETY: the data is a pointer to a live iovec that describes `words`, from which the call only reads.
    check_long(unsafe {
        libc::ptrace(libc::PTRACE_SETREGSET, tid as libc::pid_t, NT_PRSTATUS, &raw const area)
    })
    .map(|_| ())
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitResult {
    pub(crate) tid: u32,
    /// Whether the thread has ended; otherwise it is stopped.
    pub(crate) ended: bool,
    /// For a stopped thread, the signal in the lowest byte and the event above it.
    pub(crate) code: i32,
}

/// Whether a wait returns at once if there is nothing to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// It returns at once.
    Poll,
    /// It blocks until a signal interrupts it.
    UntilSignal,
}

/// Waits for a thread that the calling thread traces and that has stopped or ended, and leaves it in that
/// state. A stop is over when the thread is resumed, an end when it is [reaped](reap). Returns `None` if a
/// signal came first, or if nothing has happened.
pub(crate) fn wait(mode: WaitMode) -> io::Result<Option<WaitResult>> {
    // SAFETY: a siginfo_t is plain bits, for which zeros are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let mut options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    if mode == WaitMode::Poll {
        options |= libc::WNOHANG;
    }
    // SAFETY: `info` is a live siginfo_t that the call writes to.
    match check(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    // SAFETY: the call has filled in the fields of a child's state change, or left zeros.
    let (pid, code) = unsafe { (info.si_pid(), info.si_status()) };
    let ended = matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    Ok((pid > 0).then_some(WaitResult { tid: pid as u32, ended, code }))
}

/// Consumes a thread's stop. The kernel resumes a thread that has changed its id by exec only after its
/// tracer has done this (`kernel/ptrace.c`, `looks_like_a_spurious_pid`).
pub(crate) fn take_stop(tid: u32) {
    let options = libc::WSTOPPED | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the kernel accepts a null pointer if no details are requested.
    unsafe { libc::waitid(libc::P_PID, tid, ptr::null_mut(), options) };
}

/// Reaps a traced thread that has ended, so that its parent is notified.
pub(crate) fn reap(tid: u32) {
    let options = libc::WEXITED | libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the kernel accepts a null pointer if no details are requested. A thread that is gone already needs
    // no handling.
    unsafe { libc::waitid(libc::P_PID, tid, ptr::null_mut(), options) };
}

/// Copies memory of another process from an address on, as far as it is readable. Returns the number of
/// bytes.
pub(crate) fn read_memory(pid: u32, address: u64, out: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: out.len() };
    let pid = pid as libc::pid_t;
    // SAFETY: the local iovec describes `out`, to which the call writes; the remote one is the other
    // process's memory, from which it reads, or fails.
    let len = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(len).unwrap_or(0)
}
