//! The command of a run, from its start to the recorder's exit status.

use crate::control::{Control, Phase};
use crate::failure::FAILED;
use crate::printer::Printer;
use crate::system::launch::{ChildExit, EndReason, RunningChild, end_message, exit_status};
use crate::system::signals::{EndSignal, StopHandle};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How long a command that must end is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// A command that runs.
pub(crate) struct LaunchedCommand {
    running: Arc<RunningChild>,
    name: String,
    is_recorded: bool,
}

impl LaunchedCommand {
    /// A command of this name. If it `is_recorded`, its end ends the recording. Otherwise running processes
    /// are recorded, for as long as the command runs.
    pub(crate) fn new(running: RunningChild, name: String, is_recorded: bool) -> Self {
        Self { running: Arc::new(running), name, is_recorded }
    }

    /// Waits for the end of a command that was recorded to its end. Another one is ended, because the recording
    /// has ended, but is not waited for long. Returns the recorder's exit status, and the CPU time of a command
    /// that was recorded to its end.
    pub(crate) fn finish(self, reason: EndReason, printer: Printer) -> (u32, Option<Duration>) {
        if self.is_recorded && reason == EndReason::Exited {
            let ended = self.running.wait();
            let status = self.status(&ended, printer);
            return (status, ended.ok().map(|ended| ended.user + ended.system));
        }
        (self.end(reason, printer), None)
    }

    fn end(self, reason: EndReason, printer: Printer) -> u32 {
        // If a signal ended the recording, the command has already received it.
        if reason != EndReason::Stopped {
            let _ = self.running.signaller().send(EndSignal::Terminate.number());
        }
        let (sender, ended) = mpsc::channel();
        let running = Arc::clone(&self.running);
        thread::spawn(move || sender.send(running.wait()));
        match (reason, ended.recv_timeout(GRACE)) {
            (EndReason::Duration | EndReason::Exited, _) => 0,
            (EndReason::Stopped, Ok(ended)) => self.status(&ended, printer),
            (EndReason::Stopped, Err(_)) => 128 + EndSignal::Terminate.number() as u32,
        }
    }

    /// The recorder's exit status after the command's end. Prints what is unusual about that end.
    fn status(&self, ended: &io::Result<ChildExit>, printer: Printer) -> u32 {
        let Ok(ended) = ended else { return FAILED.into() };
        if let Some(message) = end_message(&self.name, ended.status) {
            printer.say(message);
        }
        exit_status(ended.status)
    }

    /// Ends the recording when the command has ended.
    fn limit_recording(&self, control: &Control) {
        let (running, control) = (Arc::clone(&self.running), control.clone());
        thread::spawn(move || {
            let _ = running.wait();
            control.end_recording();
        });
    }
}

/// From here on, requests end the recording, or the command.
pub(crate) fn enter_recording(control: &Control, stop: StopHandle, command: Option<&LaunchedCommand>) {
    let signaller = command.map(|command| command.running.signaller());
    control.enter(Phase::Recording { stop, command: signaller, interrupts: 0 });
    if let Some(command) = command.filter(|command| !command.is_recorded) {
        command.limit_recording(control);
    }
}
