//! Delays stopping by Ctrl-Z (`SIGTSTP`) until the profiler is ready for it.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::check;
use super::clock::monotonic_ns;

/// When the stop was requested; 0 if it was not.
static ASKED_AT: AtomicU64 = AtomicU64::new(0);

/// Handles `SIGTSTP` until it is dropped: the process stops only when [`Self::stop`] is called.
#[derive(Debug)]
pub(crate) struct Suspension {
    /// Whether the signal had its default action, which stops the process.
    is_ours: bool,
}

/// It calls only an async-signal-safe function: it reads a clock whose offset is known since the handler was
/// set.
extern "C" fn ask(_signal: libc::c_int) {
    ASKED_AT.store(monotonic_ns().max(1), Ordering::Relaxed);
}

/// A process that is continued before it has stopped does not stop any more, as the kernel's own rules say.
extern "C" fn withdraw(_signal: libc::c_int) {
    ASKED_AT.store(0, Ordering::Relaxed);
}

impl Suspension {
    /// Handles the signal if nothing else does, and `SIGCONT`, which withdraws the request. Fails if the
    /// kernel refuses.
    pub(crate) fn take_over() -> io::Result<Self> {
        let is_ours = [libc::SIGTSTP, libc::SIGCONT].into_iter().all(has_default_action);
        if is_ours {
            // Determines once what the handler may not determine.
            let _ = monotonic_ns();
            set_action(libc::SIGCONT, withdraw as *const () as libc::sighandler_t)?;
            set_action(libc::SIGTSTP, ask as *const () as libc::sighandler_t)?;
        }
        Ok(Self { is_ours })
    }

    /// When a stop was requested, if the process has not stopped since.
    pub(crate) fn requested_at(&self) -> Option<u64> {
        Some(ASKED_AT.load(Ordering::Relaxed)).filter(|at| self.is_ours && *at > 0)
    }

    /// Stops the whole process, and returns when it continues. Does nothing if the request was withdrawn
    /// meanwhile, except in the moment between the check and the signal.
    pub(crate) fn stop(&self) {
        if !self.is_ours || ASKED_AT.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        // If the action cannot be changed, the request is lost and may be repeated.
        if set_action(libc::SIGTSTP, libc::SIG_DFL).is_ok() {
            // SAFETY: raise takes a plain number.
            unsafe { libc::raise(libc::SIGTSTP) };
            let _ = set_action(libc::SIGTSTP, ask as *const () as libc::sighandler_t);
        }
    }
}

impl Drop for Suspension {
    /// From now on the process stops at once. It stops now if a stop was requested.
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        let _ = set_action(libc::SIGTSTP, libc::SIG_DFL);
        let _ = set_action(libc::SIGCONT, libc::SIG_DFL);
        if ASKED_AT.swap(0, Ordering::Relaxed) > 0 {
            // SAFETY: raise takes a plain number.
            unsafe { libc::raise(libc::SIGTSTP) };
        }
    }
}

fn has_default_action(signal: libc::c_int) -> bool {
    // SAFETY: a sigaction is plain data, for which zeros are valid; the call only writes it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_DFL
    }
}

/// Sets the handler of a signal. Most interrupted system calls are restarted; `poll` is not, and its callers
/// handle that.
fn set_action(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: zeros are a valid sigaction, which lives while the call reads it. The handler is the default
    // action or one of this file's. These store a number and call only clock_gettime once the clock's offset
    // is known, so they may run at any time.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        check(libc::sigaction(signal, &raw const action, ptr::null_mut()))?;
    }
    Ok(())
}
