//! Waits in the profile: their stacks, which end in the reason of the wait, their samples and their markers.

use super::marker_kinds::{WAIT, WAITING, WAKE, wait_marker_name};
use super::markers::Content;
use super::sink::ProfileSink;
use crate::account::off_cpu_interval::OffCpuInterval;
use crate::event::{FieldValue, Timestamp};
use nyquist_profile::{CategoryColor, MarkerTiming, Sample, StackId, ThreadIndex, well_known};
use std::sync::Arc;

impl ProfileSink {
    /// The stack of a wait. Its innermost function names the reason of the wait, so that every viewer shows
    /// it.
    pub(crate) fn wait_stack(&mut self, wait: &OffCpuInterval) -> Option<StackId> {
        let Some(label) = wait.cause.label() else { return wait.stack };
        let category = self.builder.add_category(well_known::WAITING, CategoryColor::Grey);
        Some(self.builder.intern_label(wait.stack, &label, Some(category)))
    }

    /// Adds a sample for the intervals that a thread has waited, at the end of its wait.
    pub(crate) fn add_wait(&mut self, row: ThreadIndex, end: Timestamp, stack: Option<StackId>, weight: u64) {
        let time = self.time(end);
        self.builder.add_sample(row, Sample { time, cpu_delta: 0, stack, weight, off_cpu: true });
    }

    /// Adds a marker for a wait, with its stack. `waited_ns` is the time that it stands for.
    pub(crate) fn add_wait_marker(
        &mut self,
        row: ThreadIndex,
        wait: &OffCpuInterval,
        (end, waited_ns): (Timestamp, u64),
        stack: Option<StackId>,
    ) {
        let (reason, texts) = wait.cause.texts();
        let text = |text: Option<&Arc<str>>| {
            text.map_or(FieldValue::Missing, |text| FieldValue::String(Arc::clone(text)))
        };
        let [object, holder] = texts.map(text);
        let waker = text(wait.waker.as_ref().map(|waker| &waker.label));
        let unseen = match waited_ns.saturating_sub(wait.length(end)) {
            0 => FieldValue::Missing,
            unseen_ns => FieldValue::Number(unseen_ns as f64 / 1e6),
        };
        let values = [FieldValue::String(reason.into()), object, holder, waker, unseen];
        let name = wait_marker_name(reason);
        let content =
            Content { name: &name, schema: Some(&WAIT), values: &values, category: Some(&WAITING), stack };
        let timing = MarkerTiming::Interval(self.time(wait.since), self.time(end));
        self.markers.add(&mut self.builder, row, content, timing);
    }

    /// Adds a marker for the end of another thread's wait, with the stack of the thread that ended it.
    pub(crate) fn add_wake_marker(
        &mut self,
        row: ThreadIndex,
        at: Timestamp,
        (woken, waited_ns): (&str, u64),
        stack: Option<StackId>,
    ) {
        let waited_ms = FieldValue::Number(waited_ns as f64 / 1e6);
        let values = [FieldValue::String(woken.into()), waited_ms];
        let content =
            Content { name: "Wake", schema: Some(&WAKE), values: &values, category: Some(&WAITING), stack };
        let timing = MarkerTiming::Instant(self.time(at));
        self.markers.add(&mut self.builder, row, content, timing);
    }
}
