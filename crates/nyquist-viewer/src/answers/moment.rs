//! `moment`: the stack of a thread at a moment.

use nyquist_profile::{Profile, StackId, ThreadIndex};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::function_table::FunctionTable;
use crate::selection::thread;

/// The maximum number of frames of the response; the innermost are kept.
const MAX_FRAMES: usize = 200;

#[derive(Debug, Serialize)]
pub(super) struct MomentAnswer<'a> {
    /// The end of the sample's time; `None` if there is no sample at the moment.
    time_ns: Option<u64>,
    is_waiting: bool,
    depth: usize,
    /// The functions from the innermost to the outermost.
    frames: Vec<usize>,
    functions: FunctionTable<'a>,
}

/// The sampled stack, before filters and transforms. O(log samples + depth).
pub(super) fn answer<'a>(context: &QueryContext<'_, 'a>) -> Result<MomentAnswer<'a>, ViewerError> {
    let profile = context.view.profile();
    let thread = thread(context.parameters.required("thread")?, profile)?;
    let time = context.parameters.required("time")?;
    let mut moment = MomentAnswer {
        time_ns: None,
        is_waiting: false,
        depth: 0,
        frames: Vec::new(),
        functions: FunctionTable::new(),
    };
    let Some((until, is_waiting, stack)) = sampled_at(profile, thread, time) else { return Ok(moment) };
    (moment.time_ns, moment.is_waiting) = (Some(until), is_waiting);
    let mut next = stack;
    while let Some(id) = next {
        let stack = profile.stack(id);
        if moment.depth < MAX_FRAMES {
            let func = profile.frame(stack.frame).func;
            moment.frames.push(context.number(&mut moment.functions, func));
        }
        moment.depth += 1;
        next = stack.prefix;
    }
    Ok(moment)
}

/// The first sample at or after a time, if its span includes that time.
fn sampled_at(profile: &Profile, thread: ThreadIndex, time: u64) -> Option<(u64, bool, Option<StackId>)> {
    let samples = &profile.thread(thread).samples;
    let (mut low, mut high) = (0, samples.len());
    while low < high {
        let middle = low.midpoint(high);
        if samples.get(middle)?.time < time { low = middle + 1 } else { high = middle }
    }
    let sample = samples.get(low)?;
    let length = sample.weight.saturating_mul(profile.meta().interval).max(sample.cpu_delta);
    let is_covered = sample.time.saturating_sub(length) <= time;
    is_covered.then_some((sample.time, sample.off_cpu, sample.stack))
}
