//! Watches in a browser: the page gets the snapshots, and this thread waits for the end.

use super::command_output::LINES_REPEATED;
use super::quit_reason::{QuitReason, ended};
use super::session::{Message, Session};
use crate::live_page::PageProfile;
use crate::printer::Printer;
use std::sync::mpsc::Receiver;

/// Waits for a signal. The watched target may end before that. Its page stays.
pub(super) fn run(
    session: &Session,
    shown: &PageProfile,
    messages: &Receiver<Message>,
    printer: Printer,
) -> QuitReason {
    let mut end = QuitReason::Gone;
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
                end = QuitReason::Ended(status);
                printer.say("Its page is still served; Ctrl-C ends");
            }
            Message::Signal(signal) => {
                return if end == QuitReason::Gone { QuitReason::Signal(signal) } else { end };
            }
            Message::Gone => return QuitReason::Gone,
            Message::Snapshot(_) | Message::LastSnapshot(_) | Message::Input(_) => {}
        }
    }
    end
}
