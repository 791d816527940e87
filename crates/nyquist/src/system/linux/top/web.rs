//! Watches in a browser: the page gets the snapshots, and this thread waits for the end.

use super::LINES_REPEATED;
use super::end::{End, ended};
use super::session::{Message, Session};
use crate::live_page::Shown;
use crate::printer::Printer;
use std::sync::mpsc::Receiver;

/// Waits for a signal. The watched target may end before that. Its page stays.
pub(super) fn run(session: &Session, shown: &Shown, messages: &Receiver<Message>, printer: Printer) -> End {
    let mut end = End::Gone;
    while let Ok(message) = messages.recv() {
        match message {
            Message::Ended(status) => {
                shown.note_saving();
                printer.say(format_args!("{} {}", session.about.title(), ended(status)));
                if status.is_some_and(|status| status.shell_code() != 0) {
                    for line in session.output.last(LINES_REPEATED) {
                        printer.say(format_args!("  {line}"));
                    }
                }
                end = End::Ended(status);
                printer.say("Its page is still served; Ctrl-C ends");
            }
            Message::Asked(signal) => return if end == End::Gone { End::Asked(signal) } else { end },
            Message::Gone => return End::Gone,
            Message::Snapshot(_) | Message::Input(_) => {}
        }
    }
    end
}
