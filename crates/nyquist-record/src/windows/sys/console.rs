//! Requests to end that the console or the system sends.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT,
    SetConsoleCtrlHandler,
};
use windows_sys::core::BOOL;

use super::check;

/// A request of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleEvent {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Break.
    Break,
    /// The console's window is closed.
    Close,
    /// The user logs off, or the system shuts down.
    Shutdown,
}

/// The requests that have come and were not taken.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    events: Mutex<VecDeque<ConsoleEvent>>,
    came: Condvar,
}

impl Queue {
    /// Waits until there is a request.
    pub(crate) fn wait(&self) {
        let mut events = self.lock();
        while events.is_empty() {
            events = self.came.wait(events).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the first request, if there is one.
    pub(crate) fn take(&self) -> Option<ConsoleEvent> {
        self.lock().pop_front()
    }

    fn push(&self, event: ConsoleEvent) {
        self.lock().push_back(event);
        self.came.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ConsoleEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static RECEIVER: Mutex<Option<Arc<Queue>>> = Mutex::new(None);

/// How long the process lives on after the console's window was closed: the system ends it when the handler
/// returns, or after 5 seconds.
const MAX_CLOSING_TIME: Duration = Duration::from_secs(10);

/// Adds all requests to a queue from now on. They no longer end the process by themselves.
pub(crate) fn take_over(queue: Arc<Queue>) -> io::Result<()> {
    *RECEIVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(queue);
    // SAFETY: the handler is a function that lives as long as the program.
    check(unsafe { SetConsoleCtrlHandler(Some(handle), 1) })
}

/// Runs on a thread that the system makes for each request.
unsafe extern "system" fn handle(kind: u32) -> BOOL {
    let (event, ends) = match kind {
        CTRL_C_EVENT => (ConsoleEvent::Interrupt, false),
        CTRL_BREAK_EVENT => (ConsoleEvent::Break, false),
        CTRL_CLOSE_EVENT => (ConsoleEvent::Close, true),
        CTRL_LOGOFF_EVENT | CTRL_SHUTDOWN_EVENT => (ConsoleEvent::Shutdown, true),
        _ => return 0,
    };
    let receiver = RECEIVER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(queue) = receiver else { return 0 };
    queue.push(event);
    if ends {
        thread::sleep(MAX_CLOSING_TIME);
    }
    1
}
