//! The requests with which users and the system end a recording, as values that a thread waits for.

use std::sync::Arc;
use std::{io, thread};

use super::sys::console::{self, ConsoleEvent, Queue};

pub use crate::request::{EndRequest, EndSignal, KILL};

/// Runs a program's work on a thread with a stack of this size in bytes: a main thread has 1 MB. The calling
/// thread waits meanwhile.
pub fn on_own_stack<T: Send>(stack_bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let worked = thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(stack_bytes).spawn_scoped(scope, work)?;
        Ok::<_, io::Error>(worker.join())
    })?;
    worked.or_else(|panic| std::panic::resume_unwind(panic))
}

/// Receives the requests to end. They no longer end the process, except that the system ends it some seconds
/// after the console's window was closed.
#[derive(Debug)]
pub struct Requests {
    queue: Arc<Queue>,
}

impl Requests {
    /// Takes over the requests for the process. A process that was started with Ctrl-C switched off is not
    /// sent any.
    pub fn take_over() -> io::Result<Self> {
        let queue: Arc<Queue> = Arc::default();
        console::take_over(Arc::clone(&queue))?;
        Ok(Self { queue })
    }

    /// Waits until a request can be taken.
    pub fn wait(&self) -> io::Result<()> {
        self.queue.wait();
        Ok(())
    }

    /// Takes the next request, if one has come.
    pub fn take(&self) -> io::Result<Option<EndRequest>> {
        let Some(event) = self.queue.take() else { return Ok(None) };
        let signal = match event {
            ConsoleEvent::Interrupt => EndSignal::Interrupt,
            ConsoleEvent::Break => EndSignal::Quit,
            ConsoleEvent::Close => EndSignal::HangUp,
            ConsoleEvent::Shutdown => EndSignal::Terminate,
        };
        Ok(Some(EndRequest { signal, typed: true }))
    }
}
