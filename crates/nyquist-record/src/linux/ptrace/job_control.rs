//! Handles Ctrl-Z, which the recorder and the command both receive: the tracer stops last, because without it
//! no signal is delivered.

use super::tracee::{Activity, Tracee};
use super::tracer::Tracer;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::process::group_of;

/// How long programs may clean up before they stop, such as an editor that restores the terminal. A program
/// that has not stopped by then ignores the signal.
const MAX_STOP_DELAY_NS: u64 = 1_000_000_000;

impl Tracer {
    /// Stops this process if that was requested, after all others with the same request have stopped.
    /// Otherwise, a handler would run only when the tracer continues, and would stop its program after the
    /// user has entered `fg`.
    pub(super) fn stop_after_the_command(&mut self) {
        let Some(requested_at) = self.suspension.requested_at() else { return };
        let is_late = monotonic_ns().saturating_sub(requested_at) >= MAX_STOP_DELAY_NS;
        if is_late || self.group_has_stopped() {
            // A thread with a request to stop would stop soon, and stay so until this process continues.
            self.handle_last_stops();
            self.suspension.stop();
        }
    }

    /// Whether all traced threads in this process's group have stopped, except those that are ending.
    fn group_has_stopped(&self) -> bool {
        let own = group_of(std::process::id());
        let has_stopped = |task: &Tracee| task.has_stopped || matches!(task.activity, Activity::Aside);
        self.tasks.all().iter().all(|task| has_stopped(task) || group_of(task.pid) != own)
    }
}
