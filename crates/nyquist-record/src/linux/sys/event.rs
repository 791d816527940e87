//! Opening, enabling and reading perf events (perf_event_open(2)).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys as perf;
pub(crate) use perf_event_open_sys::bindings::perf_event_attr;

use super::check;

/// The threads that an event counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    /// A single thread.
    Thread(u32),
    /// All processes in a control group and below it. The descriptor is the group's folder.
    Group(BorrowedFd<'a>),
    /// All threads.
    Everyone,
}

/// Opens an event on a CPU.
pub(crate) fn open(mut attr: perf_event_attr, subject: Subject<'_>, cpu: u32) -> io::Result<OwnedFd> {
    attr.size = size_of::<perf_event_attr>() as u32;
    open_at(&mut attr, subject, cpu as libc::c_int)
}

/// Opens an event that only counts: on one CPU, or on all if `cpu` is `None`, which is valid only for a
/// thread. `path` is that of a probe's file.
pub(crate) fn open_counter(
    mut attr: perf_event_attr,
    subject: Subject<'_>,
    cpu: Option<u32>,
    path: Option<&CStr>,
) -> io::Result<OwnedFd> {
    attr.size = size_of::<perf_event_attr>() as u32;
    if let Some(path) = path {
        // The kernel reads the path from there while it opens the event, and `path` outlives that.
        attr.__bindgen_anon_3.config1 = path.as_ptr() as u64;
    }
    open_at(&mut attr, subject, cpu.map_or(-1, |cpu| cpu as libc::c_int))
}

/// Opens an event on the CPU with a number; -1 means all.
fn open_at(attr: &mut perf_event_attr, subject: Subject<'_>, cpu: libc::c_int) -> io::Result<OwnedFd> {
    /// The event is in no group.
    const NO_GROUP: libc::c_int = -1;
    let (number, flag) = match subject {
        Subject::Thread(tid) => (tid as libc::pid_t, 0),
        Subject::Group(folder) => (folder.as_raw_fd(), perf::bindings::PERF_FLAG_PID_CGROUP),
        Subject::Everyone => (-1, 0),
    };
    let flags = libc::c_ulong::from(perf::bindings::PERF_FLAG_FD_CLOEXEC | flag);
    // SAFETY: `attr` is a valid attribute of the size that it states; the kernel writes only into it. The
    // callers make sure that a path in it is a live string.
    let fd = check(unsafe { perf::perf_event_open(attr, number, cpu, NO_GROUP, flags) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Enables an event and all that inherited it.
pub(crate) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event, and the call takes no pointer.
    check(unsafe { perf::ioctls::ENABLE(event.as_raw_fd(), 0) }).map(|_| ())
}

/// Disables an event and all that inherited it.
pub(crate) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event, and the call takes no pointer.
    check(unsafe { perf::ioctls::DISABLE(event.as_raw_fd(), 0) }).map(|_| ())
}

/// Changes the time between two samples of a clock event, and restarts its interval.
pub(crate) fn set_period(event: BorrowedFd<'_>, period_ns: u64) -> io::Result<()> {
    // The call takes the value's address (`_IOW('$', 4, __u64)`), despite the binding's type.
    let address = (&raw const period_ns) as u64;
    // SAFETY: the descriptor is an open perf event, and the call reads the live u64 at the address.
    check(unsafe { perf::ioctls::PERIOD(event.as_raw_fd(), address) }).map(|_| ())
}

/// Redirects an event's records into the ring of another one on the same CPU.
pub(crate) fn set_output(event: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both descriptors are open perf events, and the call takes no pointer.
    check(unsafe { perf::ioctls::SET_OUTPUT(event.as_raw_fd(), output.as_raw_fd()) }).map(|_| ())
}

/// Records only those occurrences of a tracepoint for which an expression is true.
pub(crate) fn set_filter(event: BorrowedFd<'_>, filter: &CStr) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event, and the call reads the live string, which it does not
    // keep.
    check(unsafe { perf::ioctls::SET_FILTER(event.as_raw_fd(), filter.as_ptr().cast_mut()) }).map(|_| ())
}

/// The kernel's id of an event. Its records and those of all that inherited it contain the id.
pub(crate) fn id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0;
    // SAFETY: the descriptor is an open perf event, and `id` a valid u64 that the call writes to.
    check(unsafe { perf::ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Reads an event's words: its value including all that inherited it, then the fields of its read format.
pub(crate) fn read<const N: usize>(event: BorrowedFd<'_>) -> io::Result<[u64; N]> {
    let mut words = [0_u64; N];
    // SAFETY: the pointer and the length are those of `words`, in which every bit pattern is valid.
    let len = unsafe { libc::read(event.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
    if len < 0 { Err(io::Error::last_os_error()) } else { Ok(words) }
}

/// The fill level of the ring in bytes at which the reader of an event is woken.
#[cfg(test)]
pub(crate) fn wakeup_watermark(attr: &perf_event_attr) -> u32 {
    // SAFETY: both fields of the union are plain numbers of 32 bits.
    unsafe { attr.__bindgen_anon_2.wakeup_watermark }
}
