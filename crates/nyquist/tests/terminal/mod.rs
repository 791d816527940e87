//! A terminal on which commands are run.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;

/// The output of a command on a terminal of that many columns.
pub(crate) fn shown(command: &mut Command, columns: u16) -> Vec<u8> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let path = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    command.stdout(terminal).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The `Command` still holds the terminal, which would keep it open.
    command.stdout(Stdio::null());
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // No process has the terminal open any more, so reading ends with an error.
        let _ = File::from(controller).read_to_end(&mut shown);
        shown
    });
    child.wait().unwrap();
    reader.join().unwrap()
}
