//! Forgetting: a profile without its old samples and markers, and without the stacks and frames that only
//! they had.

use nyquist_profile::{
    CodeTables, CounterId, CounterSample, Marker, MarkerTiming, ProfileBuilder, StackId, StringId,
    ThreadIndex,
};
use rustc_hash::FxHashMap;

/// Drops all samples, markers and values of counters before `before` (nanoseconds since the profile's zero). These
/// used stacks stay, too. Returns the new id of each stack. Linear in the size of the profile before.
pub(crate) fn samples_before(
    builder: ProfileBuilder,
    before: u64,
    used_stacks: impl Iterator<Item = StackId>,
) -> (ProfileBuilder, Vec<Option<StackId>>) {
    let (mut builder, code) = ProfileBuilder::rebuild(builder.finish());
    let mut used = vec![false; code.stacks.len()];
    for stack in used_stacks {
        used[stack.index()] = true;
    }
    for index in 0..builder.profile().threads().len() {
        let thread = builder.thread_mut(ThreadIndex::from_index(index));
        thread.samples.drop_first(thread.samples.count_before(before));
        drop_markers(&mut thread.markers, before);
        let stacks = thread.samples.iter().map(|sample| sample.stack);
        for stack in stacks.chain(thread.markers.iter().map(|marker| marker.stack)).flatten() {
            used[stack.index()] = true;
        }
    }
    for index in 0..builder.profile().counters().len() {
        drop_changes(&mut builder.counter_mut(CounterId::from_index(index)).samples, before);
    }
    let map = keep_used(&mut builder, &code, used);
    builder.remap_stacks(|stack| map[stack.index()]);
    (builder, map)
}

/// Drops the markers that end before `before`. If an interval consists of two markers, both stay or both are
/// dropped.
fn drop_markers(markers: &mut Vec<Marker>, before: u64) {
    let mut open: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    let mut keep = vec![true; markers.len()];
    for (at, marker) in markers.iter().enumerate() {
        match marker.timing {
            MarkerTiming::Instant(end) | MarkerTiming::Interval(_, end) => keep[at] = end >= before,
            MarkerTiming::IntervalStart(_) => open.entry(marker.name).or_default().push(at),
            MarkerTiming::IntervalEnd(end) => {
                let start = open.get_mut(&marker.name).and_then(Vec::pop);
                keep[at] = end >= before;
                if let Some(start) = start {
                    keep[start] = end >= before;
                }
            }
        }
    }
    let mut keep = keep.into_iter();
    markers.retain(|_| keep.next().unwrap_or(true));
}

/// Drops a counter's changes before `before`, but keeps their sum. It is added to the first change that
/// stays, or stays alone if no change stays.
fn drop_changes(samples: &mut Vec<CounterSample>, before: u64) {
    let first = samples.partition_point(|sample| sample.time < before);
    let first = first.min(samples.len().saturating_sub(1));
    let dropped: f64 = samples.drain(..first).map(|sample| sample.delta).sum();
    if let Some(first) = samples.first_mut() {
        first.delta += dropped;
    }
}

/// Interns the used stacks again, with all of their callers. Returns the new id of each.
fn keep_used(builder: &mut ProfileBuilder, code: &CodeTables, mut used: Vec<bool>) -> Vec<Option<StackId>> {
    // Parents precede children. So in reverse order, a child marks its parent before the parent's turn.
    for (index, stack) in code.stacks.iter().enumerate().rev() {
        if let (true, Some(prefix)) = (used[index], stack.prefix) {
            used[prefix.index()] = true;
        }
    }
    let mut map: Vec<Option<StackId>> = Vec::with_capacity(code.stacks.len());
    for (stack, used) in code.stacks.iter().zip(used) {
        let new = used.then(|| {
            let mut frame = code.frames[stack.frame.index()];
            frame.func = builder.intern_func(code.funcs[frame.func.index()]);
            frame.native_symbol = frame
                .native_symbol
                .map(|symbol| builder.intern_native_symbol(code.native_symbols[symbol.index()]));
            let frame = builder.intern_frame(frame);
            builder.intern_stack(stack.prefix.and_then(|prefix| map[prefix.index()]), frame)
        });
        map.push(new);
    }
    map
}
