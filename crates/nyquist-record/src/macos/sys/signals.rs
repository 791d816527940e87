//! Signals, as bytes in a pipe.

use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use super::check;

/// The signals that request the end.
pub(crate) const REQUESTS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// The signal of a file that becomes larger than the limit.
pub(crate) const FILE_SIZE: i32 = libc::SIGXFSZ;

/// Where the handler writes to; -1 if nowhere.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// It is never closed, because the handler may be about to write.
static WRITER: OnceLock<PipeWriter> = OnceLock::new();

/// The size of a message in the pipe: a signal's number, and the number of its sender or 0.
const MESSAGE: usize = 5;

/// A signal that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedSignal {
    pub(crate) number: i32,
    /// The process that has sent it, or for which the kernel worked when it sent it, if one is named.
    pub(crate) sender: Option<u32>,
}

/// Receives the requests to end, which no longer end the process. Those that are ignored stay ignored.
pub(crate) fn take_over() -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    let writer = WRITER.get_or_init(|| writer);
    PIPE.store(writer.as_raw_fd(), Ordering::Release);
    for number in REQUESTS {
        if !is_ignored(number)? {
            handle(number)?;
        }
    }
    Ok(reader)
}

/// Waits until a signal can be read. Returns early after a signal of another kind.
pub(crate) fn wait(pipe: &PipeReader) -> io::Result<()> {
    poll(pipe, -1).map(|_| ())
}

/// Reads the next signal, if one has come.
pub(crate) fn next(mut pipe: &PipeReader) -> io::Result<Option<ReceivedSignal>> {
    if !poll(pipe, 0)? {
        return Ok(None);
    }
    let mut bytes = [0; MESSAGE];
    pipe.read_exact(&mut bytes)?;
    let [number, sender @ ..] = bytes;
    let sender = u32::from_ne_bytes(sender);
    Ok(Some(ReceivedSignal { number: number.into(), sender: (sender > 0).then_some(sender) }))
}

/// Whether a pipe can be read within a time in milliseconds; -1 is any time.
fn poll(pipe: &PipeReader, milliseconds: i32) -> io::Result<bool> {
    let mut polled = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one structure, which lives through the call.
    match check(unsafe { libc::poll(&raw mut polled, 1, milliseconds) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        result => result.map(|()| polled.revents != 0),
    }
}

fn is_ignored(number: i32) -> io::Result<bool> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, sigaction(2) only writes the present one, which lives through the call.
    check(unsafe { libc::sigaction(number, ptr::null(), now.as_mut_ptr()) })?;
    // SAFETY: the call has set it, and zeros were valid.
    Ok(unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN)
}

fn handle(number: i32) -> io::Result<()> {
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    let mut action = action_of(handler as libc::sighandler_t);
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the type that `SA_SIGINFO` asks for, and calls only what sigaction(2) lists as
    // safe in handlers. The action lives through the call.
    check(unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) })
}

/// Lets this process ignore a signal.
pub(crate) fn ignore(number: i32) {
    let action = action_of(libc::SIG_IGN);
    // SAFETY: the action has no handler, and lives through the call.
    unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) };
}

fn action_of(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: the structure is plain numbers; zeros mean an empty set of signals and no flags.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action
}

/// Runs between any two instructions of any thread: it only writes to a pipe.
extern "C" fn on_signal(number: i32, information: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with `SA_SIGINFO`, the system passes a structure that lives until the handler returns; it is
    // checked for null because nothing can be reported from here.
    let sender = unsafe { information.as_ref() }.map_or(0, |information| information.si_pid);
    let [first, second, third, fourth] = sender.to_ne_bytes();
    let bytes: [u8; MESSAGE] = [number as u8, first, second, third, fourth];
    // SAFETY: the address of this thread's error number is valid on every thread.
    let error = unsafe { libc::__error() };
    // SAFETY: as above. write(2) may be called in handlers; the descriptor is never closed, and `bytes` lives
    // through the call. So few bytes to a pipe are written at once or not at all. The error number is restored,
    // because the interrupted code may be about to read it.
    unsafe {
        let before = *error;
        libc::write(PIPE.load(Ordering::Acquire), bytes.as_ptr().cast(), bytes.len());
        *error = before;
    }
}

/// Whether this process is in the group to which the terminal sends its signals.
pub(crate) fn is_in_foreground() -> bool {
    // SAFETY: both calls take numbers; descriptors that are closed or no terminals give -1.
    unsafe { (0..3).any(|descriptor| libc::tcgetpgrp(descriptor) == libc::getpgrp()) }
}

/// The signals that a thread blocks.
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

impl Mask {
    /// Lets the calling thread block all signals. Returns those that it blocked before.
    pub(crate) fn block_all() -> io::Result<Self> {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::zeroed());
        // SAFETY: sigfillset(3) initialises the set. Both sets live through the calls.
        let error = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: the call has set it, and zeros were valid.
        Ok(Self(unsafe { before.assume_init() }))
    }

    /// Lets the calling thread block these signals alone.
    pub(crate) fn set(self) {
        // SAFETY: the set is initialised, and lives through the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
