//! Groups of allocated blocks, as markers with stacks.

use super::markers::{Content, Markers};
use super::profile_time::since;
use super::sink::ProfileSink;
use crate::account::heap::AllocatedGroup;
use crate::event::{FieldValue, Timestamp};
use nyquist_profile::{AllocationMeasure, MarkerTiming, ProfileBuilder, allocation_schema};
use std::sync::{Arc, LazyLock};

impl ProfileSink {
    /// Adds a marker for each group of blocks.
    pub(crate) fn add_allocations(&mut self, groups: &[AllocatedGroup]) {
        let (start, sink) = (self.start, &mut (&mut self.builder, &mut self.markers));
        for group in groups {
            add(sink, group, start);
        }
    }

    /// A copy of the profile with a marker for each group of blocks. The profile itself gets none.
    pub(super) fn with_allocations(
        &self,
        mut builder: ProfileBuilder,
        groups: &[AllocatedGroup],
    ) -> ProfileBuilder {
        if !groups.is_empty() {
            let sink = &mut (&mut builder, &mut self.markers.clone());
            for group in groups {
                add(sink, group, self.start);
            }
        }
        builder
    }
}

/// Adds a marker for a group of blocks to a profile with that zero.
fn add(
    (builder, markers): &mut (&mut ProfileBuilder, &mut Markers),
    group: &AllocatedGroup,
    zero: Timestamp,
) {
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
    let start = since(zero, group.first);
    let timing = match group.end {
        Some(end) => MarkerTiming::Interval(start, since(zero, end)),
        None => MarkerTiming::Instant(start),
    };
    markers.add(builder, group.row, content, timing);
}
