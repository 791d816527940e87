//! Signals as values: `signalfd`.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd};

use super::check;
use super::poll::PollSet;

/// A descriptor from which blocked signals are read.
#[derive(Debug)]
pub(crate) struct Descriptor {
    file: File,
}

/// A signal that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedSignal {
    pub(crate) number: i32,
    /// Whether the kernel sent it (a key was typed on the terminal, or the terminal was closed), and not a
    /// process.
    pub(crate) by_kernel: bool,
}

impl Descriptor {
    /// Blocks the signals in the calling thread, and opens a descriptor for them.
    pub(crate) fn new(numbers: &[i32]) -> io::Result<Self> {
        // SAFETY: a sigset_t is plain bits, for which zeros are valid, and it outlives the calls that read it.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for &number in numbers {
                check(libc::sigaddset(&raw mut set, number))?;
            }
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
                0 => check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?,
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        };
        // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
        Ok(Self { file: unsafe { File::from_raw_fd(fd) } })
    }

    /// Waits until a signal can be read. May return early.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut poll = PollSet::default();
        poll.add(self.file.as_raw_fd());
        poll.wait(None)
    }

    /// Reads a signal, if one is there.
    pub(crate) fn read(&self) -> io::Result<Option<ReceivedSignal>> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut bytes = [0; SIZE];
        match (&self.file).read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            read => read?,
        }
        // SAFETY: the structure is plain numbers, for which all bits are valid, and `bytes` has its size.
        let info: libc::signalfd_siginfo = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let by_kernel = info.ssi_code == libc::SI_KERNEL;
        Ok(Some(ReceivedSignal { number: info.ssi_signo as i32, by_kernel }))
    }
}

/// A thread's mask of blocked signals.
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

impl Mask {
    /// Blocks all signals in the calling thread, and returns the previous mask.
    pub(crate) fn block_all() -> io::Result<Self> {
        // SAFETY: a sigset_t is plain bits, for which zeros are valid; both sets outlive the calls.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
                0 => Ok(Self(before)),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Sets the mask of the calling thread.
    pub(crate) fn set(self) {
        // SAFETY: it is a set that the kernel returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Makes a signal without effect whose default action would end this process. Programs that this one starts
/// have the default action again, because a handler does not survive exec.
pub(crate) fn outlive(number: i32) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: a sigaction is plain data, for which zeros are valid; the handler does nothing, so it may run
    // anywhere.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(number, std::ptr::null(), &raw mut action) == 0;
        if known && action.sa_sigaction == libc::SIG_DFL {
            action = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(number, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether a signal is ignored.
pub(crate) fn is_ignored(number: i32) -> bool {
    // SAFETY: a sigaction is plain data, for which zeros are valid; the call only writes it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
