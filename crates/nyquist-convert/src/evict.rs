//! Forgetting: a profile without its old samples, and without the stacks and frames that only they had.

use nyquist_profile::{CodeTables, MarkerTiming, ProfileBuilder, StackId, ThreadIndex};

/// Drops all samples before `before` (nanoseconds since the profile's zero). Linear in what there was.
pub(crate) fn samples_before(builder: ProfileBuilder, before: u64) -> ProfileBuilder {
    let (mut builder, code) = ProfileBuilder::rebuild(builder.finish());
    let mut used = vec![false; code.stacks.len()];
    for index in 0..builder.profile().threads().len() {
        let thread = builder.thread_mut(ThreadIndex::from_index(index));
        let first = thread.samples.partition_point(|sample| sample.time < before);
        thread.samples.drain(..first);
        thread.markers.retain(|marker| end(marker.timing) >= before);
        let stacks = thread.samples.iter().map(|sample| sample.stack);
        for stack in stacks.chain(thread.markers.iter().map(|marker| marker.stack)).flatten() {
            used[stack.index()] = true;
        }
    }
    let map = keep_used(&mut builder, &code, used);
    builder.remap_stacks(|stack| map[stack.index()]);
    builder
}

/// The last moment that a marker speaks of; the begin of an interval speaks of all that follows.
fn end(timing: MarkerTiming) -> u64 {
    match timing {
        MarkerTiming::Instant(end) | MarkerTiming::Interval(_, end) | MarkerTiming::IntervalEnd(end) => end,
        MarkerTiming::IntervalStart(_) => u64::MAX,
    }
}

/// Interns the stacks that are used, with all of their callers, again. Gives back the new id of each.
fn keep_used(builder: &mut ProfileBuilder, code: &CodeTables, mut used: Vec<bool>) -> Vec<Option<StackId>> {
    // Parents precede children: backwards, a child marks its parent before the parent's turn.
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
