//! What the conversion has made since the last time, for its spool.

use super::Pipeline;
use crate::account::off_cpu_interval::OffCpuInterval;
use crate::event::{Tid, Timestamp};
use crate::spool::tap::SpoolTap;
use crate::statistics::Statistics;
use nyquist_profile::StackId;
use nyquist_spool::{Batch, LastingWait, State};

impl Pipeline {
    /// What is new since the last call. All events before `until` were converted.
    pub(crate) fn spool(&self, tap: &mut SpoolTap, until: Timestamp) -> Batch {
        let mut batch = Batch::default();
        self.sink.add_new_rows(tap, &self.processes, &mut batch);
        let Statistics { samples, lost, throttled, truncated, completed, markers, .. } = self.statistics();
        let end = self.sink.time(self.last_time.max(until));
        let waits = self.off_cpu.all().into_iter().filter_map(|(tid, wait)| self.lasting_wait(tid, &wait));
        let waits = waits.collect();
        State { end, samples, lost, throttled, truncated, completed, markers, waits }.add_to(&mut batch);
        batch
    }

    /// A wait that has not ended, if its thread has a row.
    fn lasting_wait(&self, tid: Tid, wait: &OffCpuInterval) -> Option<LastingWait> {
        let thread = self.processes.live_thread((wait.pid, tid))?.index?;
        let (reason, texts) = wait.cause.texts();
        let [object, holder] = texts.map(|text| text.map(ToString::to_string));
        Some(LastingWait {
            thread: thread.index(),
            since: self.sink.time(wait.since),
            stack: wait.stack.map(StackId::index),
            label: wait.cause.label(),
            reason: reason.to_owned(),
            object,
            holder,
        })
    }
}
