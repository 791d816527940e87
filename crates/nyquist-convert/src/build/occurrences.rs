//! Requested events that happened on threads, as markers with stacks.

use super::markers::Content;
use super::sink::ProfileSink;
use crate::event::{FieldValue, Occurrence, Timestamp};
use nyquist_profile::{MarkerTiming, StackId, ThreadIndex};

impl ProfileSink {
    /// Adds a marker for an occurrence, with its stack.
    pub(crate) fn add_occurrence(
        &mut self,
        row: ThreadIndex,
        now: Timestamp,
        occurrence: &Occurrence,
        stack: Option<StackId>,
    ) {
        let Occurrence { kind, count, values, .. } = occurrence;
        let count = FieldValue::Integer(i64::try_from(*count).unwrap_or(i64::MAX));
        let values: Vec<_> = [count].into_iter().chain(values.iter().cloned()).collect();
        let schema = Some(&kind.schema);
        let content = Content { name: &kind.name, schema, values: &values, category: None, stack };
        let timing = MarkerTiming::Instant(self.time(now));
        self.markers.add(&mut self.builder, row, content, timing);
    }
}
