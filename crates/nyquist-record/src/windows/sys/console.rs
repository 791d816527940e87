//! Requests to end that the console or the system sends.

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::Sender;
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

static RECEIVER: Mutex<Option<Sender<ConsoleEvent>>> = Mutex::new(None);

/// How long the process lives on after the console's window was closed: the system ends it when the handler
/// returns, or after 5 seconds.
const LONGEST_CLOSING: Duration = Duration::from_secs(10);

/// Sends all requests to a channel from now on. They no longer end the process by themselves.
pub(crate) fn take_over(sender: Sender<ConsoleEvent>) -> io::Result<()> {
    *RECEIVER.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(sender);
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
    let sent = match &*RECEIVER.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(sender) => sender.send(event).is_ok(),
        None => false,
    };
    if sent && ends {
        thread::sleep(LONGEST_CLOSING);
    }
    BOOL::from(sent)
}
