//! Requests to end a recording, alike on every system.

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The kind of request.
    pub signal: EndSignal,
    /// Whether it was typed on the terminal, which sends it to the command as well.
    pub typed: bool,
}

/// A signal that requests the end. Windows has events of the console with the same meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Ctrl-C.
    Interrupt,
    /// A termination request, such as from a service manager; on Windows, the end of the user's session.
    Terminate,
    /// The terminal was closed.
    HangUp,
    /// `Ctrl-\`, or Ctrl-Break on Windows, on which Java and Go programs print the stacks of their threads.
    Quit,
}

/// The number of the signal that ends a process unconditionally (`SIGKILL`).
pub const KILL: i32 = 9;

impl EndSignal {
    /// The signal's number, which is the same on all systems with signals (POSIX, "kill").
    pub fn number(self) -> i32 {
        match self {
            Self::HangUp => 1,
            Self::Interrupt => 2,
            Self::Quit => 3,
            Self::Terminate => 15,
        }
    }

    /// The signal with a number; `None` if it does not request the end.
    #[cfg(unix)]
    pub(crate) fn of(number: i32) -> Option<Self> {
        let all = [Self::Interrupt, Self::Terminate, Self::HangUp, Self::Quit];
        all.into_iter().find(|signal| signal.number() == number)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_systems() {
        let signals = [EndSignal::HangUp, EndSignal::Interrupt, EndSignal::Quit, EndSignal::Terminate];
        let numbers = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
        assert_eq!(signals.map(EndSignal::number), numbers);
        assert_eq!(numbers.map(EndSignal::of), signals.map(Some));
        assert_eq!((EndSignal::of(libc::SIGCHLD), KILL), (None, libc::SIGKILL));
    }
}
