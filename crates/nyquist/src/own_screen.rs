//! The terminal: switched to the screen, and restored in every case.

use crate::page::stdout;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the terminal is switched to the screen.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether the mouse is received.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// The terminal in screen mode. Dropping it restores the terminal, and so does a panic of any thread.
pub(crate) struct OwnScreen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl OwnScreen {
    /// Switches the terminal to the screen.
    pub(crate) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(restore_before_panics);
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let taken = execute!(stdout(), EnterAlternateScreen, Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl OwnScreen {
    /// The same, which also receives the clicks and the wheel of the mouse.
    pub(crate) fn with_mouse(self) -> io::Result<Self> {
        receive_mouse(true)?;
        Ok(self)
    }
}

/// Whether the mouse is received. While it is, the terminal itself selects text only with Shift.
pub(crate) fn receive_mouse(is_received: bool) -> io::Result<()> {
    if MOUSE.swap(is_received, Ordering::SeqCst) == is_received {
        return Ok(());
    }
    if is_received { execute!(stdout(), EnableMouseCapture) } else { execute!(stdout(), DisableMouseCapture) }
}

impl Drop for OwnScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// A panic's message would be lost with the screen, and have wrong line breaks in raw mode.
fn restore_before_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        restore();
        print(panic);
    }));
}

/// Restores the terminal if necessary. A failure is ignored, because the terminal is closed then.
fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if MOUSE.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), DisableMouseCapture);
    }
    let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::tcgetattr;
    use std::fs::{File, OpenOptions};
    use std::io::Read as _;
    use std::process::Command;

    /// Leaves the alternate screen (xterm's private mode 1049).
    const LEAVE: &str = "\u{1b}[?1049l";

    #[test]
    #[ignore = "it panics on purpose, in a process of its own, on the terminal of the test below"]
    fn panic_on_the_own_screen() {
        let _own = OwnScreen::take().unwrap();
        let panic = std::thread::spawn(|| panic!("of a thread")).join();
        panic.unwrap();
    }

    #[test]
    fn a_panic_gives_the_terminal_back_first() {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let path = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let modes = |terminal: &File| {
            let settings = tcgetattr(terminal).unwrap();
            (settings.input_modes, settings.output_modes, settings.local_modes)
        };
        let before = modes(&terminal);
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["own_screen::tests::panic_on_the_own_screen", "--exact", "--ignored", "--nocapture"])
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal.try_clone().unwrap())
            .status()
            .unwrap();
        assert!(!status.success());
        assert_eq!(modes(&terminal), before);
        drop(terminal);
        let mut shown = Vec::new();
        // No process has the terminal open any more, so reading ends with an error.
        let _ = File::from(controller).read_to_end(&mut shown);
        let shown = String::from_utf8_lossy(&shown);
        let (screen, after) = shown.split_once(LEAVE).unwrap_or_else(|| panic!("not left: {shown}"));
        assert!(screen.contains("[?1049h") && !screen.contains("of a thread"), "{shown}");
        assert!(after.contains("of a thread\r\n"), "{shown}");
    }
}
