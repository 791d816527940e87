//! Waits that last: what they have come to so far, for views of a recording that runs.

use super::Pipeline;
use crate::account::off_cpu::{Cause, OffCpuInterval};
use crate::event::Timestamp;

/// How long a look at a thread that waits may be on its way, in nanoseconds.
const MAY_BE_SEEN_NS: u64 = 2_000_000_000;

impl Pipeline {
    /// Counts what all waits have come to until now. They go on from there.
    pub(crate) fn count_lasting_waits(&mut self, now: Timestamp) {
        for (tid, wait) in self.account.off_cpu.end_all() {
            let length = now.0.saturating_sub(wait.since.0);
            // A look may still say where a thread waits that has only just begun to.
            let may_be_seen = matches!(wait.cause, Cause::NotSeen) && length < MAY_BE_SEEN_NS;
            let rest = if length == 0 || may_be_seen {
                wait
            } else {
                self.add_wait(tid, &wait, now);
                OffCpuInterval { since: now, ..wait }
            };
            self.account.off_cpu.begin(tid, rest);
        }
    }

    /// Counts all waits until the last event. They begin anew at a point in time before which all is forgotten, and without their
    /// stacks, which are numbers of tables that are made anew.
    pub(super) fn restart_waits(&mut self, at: Timestamp) {
        self.account.off_cpu.forget_leaving();
        let lasting = self.account.off_cpu.all();
        self.end_all_waits();
        for (tid, wait) in lasting {
            let since = self.last_time.max(wait.since).max(at);
            self.account.off_cpu.begin(tid, OffCpuInterval { since, stack: None, waker: None, ..wait });
        }
    }
}
