//! The signals with which users and wrapper programs end a recording, as values that a thread waits for.

use std::io::{self, PipeReader};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::pure::senders::{self, Processes};
use super::sys::{process, signals};

pub use crate::request::{EndRequest, EndSignal, KILL};

/// Runs a program's work on a thread with a stack of this size, even if `ulimit -s` makes the main stack
/// small. The calling thread blocks all signals from then on, so that the work's threads get them.
pub fn on_own_stack<T: Send>(stack_bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let mask = signals::Mask::block_all()?;
    let worked: io::Result<_> = thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(stack_bytes).spawn_scoped(scope, move || {
            mask.set();
            work()
        })?;
        Ok(worker.join())
    });
    match worked {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            mask.set();
            Err(error)
        }
    }
}

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail with `EFBIG`, instead of ending this
/// process (`SIGXFSZ`). Programs started by this process are not affected.
pub fn outlive_file_size_limit() {
    signals::ignore(signals::FILE_SIZE);
}

/// Receives the requests to end. These signals no longer end the process.
#[derive(Debug)]
pub struct Requests {
    pipe: PipeReader,
    /// Held by the thread that takes a request, so that no other one waits for the same.
    taking: Mutex<()>,
}

impl Requests {
    /// Takes over the signals for the process. A signal that was ignored when the program began (`nohup`) stays
    /// ignored.
    pub fn take_over() -> io::Result<Self> {
        Ok(Self { pipe: signals::take_over()?, taking: Mutex::default() })
    }

    /// Waits until a request can be taken. May return early.
    pub fn wait(&self) -> io::Result<()> {
        signals::wait(&self.pipe)
    }

    /// Takes the next request, if one has come.
    pub fn take(&self) -> io::Result<Option<EndRequest>> {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(received) = signals::next(&self.pipe)? {
            let Some(signal) = EndSignal::of(received.number) else { continue };
            let own = std::process::id();
            let foreground = signals::is_in_foreground;
            let typed = senders::is_typed(signal, received.sender, own, foreground, &RunningProcesses);
            return Ok(Some(EndRequest { signal, typed }));
        }
        Ok(None)
    }
}

/// The processes of the system.
struct RunningProcesses;

impl Processes for RunningProcesses {
    fn parent(&self, pid: u32) -> Option<u32> {
        process::known(pid).map(|known| known.parent).filter(|parent| *parent > 0)
    }

    fn session(&self, pid: u32) -> Option<u32> {
        process::session(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_reported_by_number() {
        assert_eq!(EndSignal::of(2), Some(EndSignal::Interrupt));
        assert_eq!(EndSignal::of(15), Some(EndSignal::Terminate));
        assert_eq!(EndSignal::of(9), None);
    }
}
