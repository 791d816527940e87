//! A terminal that commands are run on.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;

/// What a command shows on the terminal of its standard output, of so many columns.
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
    // The command holds the terminal, which would keep it open.
    command.stdout(Stdio::null());
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // Nobody has the terminal open any more, which ends the reading with an error.
        let _ = File::from(controller).read_to_end(&mut shown);
        shown
    });
    child.wait().unwrap();
    reader.join().unwrap()
}
