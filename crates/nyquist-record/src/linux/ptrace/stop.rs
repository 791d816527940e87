//! Why a traced thread has stopped (ptrace(2), "Stopped states").

use crate::linux::sys::ptrace::WaitResult;

/// The event of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PtraceStop {
    /// It has ended, and waits to be reaped.
    Ended,
    /// It is about to receive a signal.
    Signal(i32),
    /// Job control has stopped it.
    Group,
    /// It was interrupted, was just born, or continues after job control has stopped it.
    Trap,
    /// A thread or a process was born from it.
    Birth,
    /// It has called exec.
    Exec,
    /// It is about to end.
    Exit,
}

impl PtraceStop {
    /// Decodes the result of a wait.
    pub(crate) fn of(waited: WaitResult) -> Self {
        if waited.ended {
            return Self::Ended;
        }
        let signal = waited.code & 0xff;
        match waited.code >> 8 {
            libc::PTRACE_EVENT_STOP if is_stop_signal(signal) => Self::Group,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => Self::Birth,
            libc::PTRACE_EVENT_EXEC => Self::Exec,
            libc::PTRACE_EVENT_EXIT => Self::Exit,
            0 => Self::Signal(signal),
            _ => Self::Trap,
        }
    }
}

fn is_stop_signal(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_distinguished() {
        let check = |ended, code, expected| {
            assert_eq!(PtraceStop::of(WaitResult { tid: 1, ended, code }), expected, "{code:#x}");
        };
        let event = |event: i32, signal: i32| event << 8 | signal;
        check(true, 0, PtraceStop::Ended);
        check(true, libc::SIGKILL, PtraceStop::Ended);
        check(false, libc::SIGTRAP, PtraceStop::Signal(libc::SIGTRAP));
        check(false, libc::SIGSTOP, PtraceStop::Signal(libc::SIGSTOP));
        check(false, event(libc::PTRACE_EVENT_STOP, libc::SIGSTOP), PtraceStop::Group);
        check(false, event(libc::PTRACE_EVENT_STOP, libc::SIGTTIN), PtraceStop::Group);
        check(false, event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP), PtraceStop::Trap);
        check(false, event(libc::PTRACE_EVENT_VFORK, libc::SIGTRAP), PtraceStop::Birth);
        check(false, event(libc::PTRACE_EVENT_EXEC, libc::SIGTRAP), PtraceStop::Exec);
        check(false, event(libc::PTRACE_EVENT_EXIT, libc::SIGTRAP), PtraceStop::Exit);
    }
}
