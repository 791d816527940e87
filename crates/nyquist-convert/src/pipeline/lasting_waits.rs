//! Waits that have not ended: their lengths so far, for views of a running recording.

use super::Pipeline;
use crate::account::off_cpu::{Cause, OffCpuInterval};
use crate::event::Timestamp;

/// The longest delay of the event of a look at a waiting thread, in nanoseconds.
const MAY_BE_SEEN_NS: u64 = 2_000_000_000;

impl Pipeline {
    /// Counts all waits up to now. They continue from there.
    pub(crate) fn count_lasting_waits(&mut self, now: Timestamp) {
        for (tid, wait) in self.account.off_cpu.end_all() {
            let length = now.0.saturating_sub(wait.since.0);
            // A look may still report where a thread waits whose wait has only just begun.
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

    /// Counts all waits up to the last event. They restart at `at`, because everything before it is
    /// forgotten. They lose their stacks, because stack ids refer to tables that are rebuilt.
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
