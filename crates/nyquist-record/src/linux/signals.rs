//! The signals that people and wrappers end a recording with, as values that a thread waits for.

use super::sys::signals;
use std::io;

/// The request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What was asked.
    pub signal: EndSignal,
    /// Whether it was typed on the terminal, which sends it to the command as well.
    pub typed: bool,
}

/// A signal that asks for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Ctrl-C.
    Interrupt,
    /// A polite end, as of a service.
    Terminate,
    /// The terminal went away.
    HangUp,
}

impl EndSignal {
    /// The signal's number.
    pub fn number(self) -> i32 {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::HangUp => libc::SIGHUP,
        }
    }
}

/// The signal that ends a process without its having a say (`SIGKILL`).
pub const KILL: i32 = libc::SIGKILL;

/// Receives the requests to end. They no longer end the process.
#[derive(Debug)]
pub struct Requests {
    descriptor: signals::Descriptor,
}

impl Requests {
    /// Takes over the signals, for the calling thread and the threads that it starts from now on: to be called
    /// before there are others. A signal that was ignored when the program began (`nohup`) stays ignored.
    pub fn take_over() -> io::Result<Self> {
        let numbers = [EndSignal::Interrupt, EndSignal::Terminate, EndSignal::HangUp].map(EndSignal::number);
        let wanted: Vec<_> = numbers.into_iter().filter(|&number| !signals::is_ignored(number)).collect();
        Ok(Self { descriptor: signals::Descriptor::new(&wanted)? })
    }

    /// Waits for the next request.
    pub fn wait(&self) -> io::Result<Request> {
        loop {
            let received = self.descriptor.read()?;
            let signal = match received.number {
                libc::SIGINT => EndSignal::Interrupt,
                libc::SIGTERM => EndSignal::Terminate,
                libc::SIGHUP => EndSignal::HangUp,
                _ => continue,
            };
            return Ok(Request { signal, typed: received.by_kernel });
        }
    }
}
