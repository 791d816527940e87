//! The four values of a heap profile, as Go's and others' tools know them.

use nyquist_profile::{AllocationMeasure, Meta, Profile, StackId, ThreadIndex};
use rustc_hash::FxHashMap;

/// The values of a heap profile, in the order of Go's, with what they measure.
pub const VALUES: [(&str, AllocationMeasure); 4] = [
    ("alloc_objects", AllocationMeasure::Allocations),
    ("alloc_space", AllocationMeasure::Total),
    ("inuse_objects", AllocationMeasure::LiveBlocks),
    ("inuse_space", AllocationMeasure::Live),
];

/// The type and the unit of the period of these values: one sample is taken of so many bytes.
pub(crate) const PERIOD_TYPE: (&str, &str) = ("space", "bytes");

/// The period of a profile of one of these values: the distance of its samples in bytes, or 1 if each allocation was
/// recorded. `None` for another profile.
pub(crate) fn period(meta: &Meta) -> Option<u64> {
    let (name, unit) = (&*meta.measure.name, meta.measure.unit);
    let is_heap = VALUES.iter().any(|(value, measure)| *value == name && measure.unit() == unit);
    is_heap.then(|| meta.sample_distance.unwrap_or(1))
}

/// The place of the value that a profile's samples have, if they are one of these values of allocations.
pub(super) fn shown_value(profile: &Profile) -> Option<usize> {
    let measure = AllocationMeasure::of_name(&profile.meta().measure.name)?;
    let is_heap = !profile.allocation_measures().is_empty();
    VALUES.iter().position(|(_, value)| *value == measure).filter(|_| is_heap)
}

/// The values of each stack of a thread.
pub(super) fn sums(
    profile: &Profile,
    thread: ThreadIndex,
) -> FxHashMap<Option<StackId>, [u64; VALUES.len()]> {
    let mut by_stack: FxHashMap<_, [f64; VALUES.len()]> = FxHashMap::default();
    for group in profile.allocated_groups(thread) {
        let sums = by_stack.entry(group.stack).or_default();
        for (sum, (_, measure)) in sums.iter_mut().zip(VALUES) {
            *sum += group.amount(measure);
        }
    }
    by_stack.into_iter().map(|(stack, sums)| (stack, sums.map(|sum| sum.round() as u64))).collect()
}
