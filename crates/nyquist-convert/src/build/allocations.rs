//! Groups of allocated blocks, as markers with stacks.

use super::markers::Content;
use super::sink::ProfileSink;
use crate::account::heap::AllocatedGroup;
use crate::event::FieldValue;
use nyquist_profile::{AllocationMeasure, MarkerTiming, allocation_schema};
use std::sync::{Arc, LazyLock};

impl ProfileSink {
    /// Adds a marker for a group of blocks.
    pub(crate) fn add_allocations(&mut self, group: &AllocatedGroup) {
        static SCHEMA: LazyLock<Arc<nyquist_profile::MarkerSchema>> =
            LazyLock::new(|| Arc::new(allocation_schema()));
        let value = |measure| match measure {
            AllocationMeasure::Live => group.live.bytes,
            AllocationMeasure::Peak => group.peak.bytes,
            AllocationMeasure::Total => group.total.bytes,
            AllocationMeasure::Temporary => group.temporary.blocks,
            AllocationMeasure::LiveBlocks => group.live.blocks,
            AllocationMeasure::PeakBlocks => group.peak.blocks,
            AllocationMeasure::Allocations => group.total.blocks,
        };
        let measures = AllocationMeasure::ALL.into_iter().map(value);
        let values: Vec<_> = measures.chain([group.distance as f64]).map(FieldValue::Number).collect();
        let schema = Some(&*SCHEMA);
        let content =
            Content { name: "allocations", schema, values: &values, category: None, stack: group.stack };
        let start = self.time(group.first);
        let timing = match group.end {
            Some(end) => MarkerTiming::Interval(start, self.time(end)),
            None => MarkerTiming::Instant(start),
        };
        self.markers.add(&mut self.builder, group.row, content, timing);
    }
}
