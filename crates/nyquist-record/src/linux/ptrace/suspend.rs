//! Ctrl-Z, which goes to the recorder and to the command alike: the tracer stops last, for without it no signal is delivered.

use super::task::{Activity, Task};
use super::tracer::Tracer;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::process::group_of;

/// For how long programs may put things in order before they stop, as an editor its terminal. Who has not stopped by then does
/// not care for the signal.
const LONGEST_TO_STOP_NS: u64 = 1_000_000_000;

impl Tracer {
    /// Stops this process where that was asked for and all who were asked with it have stopped. A handler that ran only when the tracer
    /// goes on would stop its program then, after the person has said `fg`.
    pub(super) fn stop_after_the_command(&self) {
        let Some(asked_at) = self.suspension.asked_at() else { return };
        let is_late = monotonic_ns().saturating_sub(asked_at) >= LONGEST_TO_STOP_NS;
        if is_late || self.group_has_stopped() {
            self.suspension.stop();
        }
    }

    /// Whether all traced threads in this process's group have stopped, but for those that are ending.
    fn group_has_stopped(&self) -> bool {
        let own = group_of(std::process::id());
        let has_stopped = |task: &Task| task.has_stopped || matches!(task.activity, Activity::Aside);
        self.tasks.all().iter().all(|task| has_stopped(task) || group_of(task.pid) != own)
    }
}
