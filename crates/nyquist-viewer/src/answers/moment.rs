//! `moment` and `stack`: the stack of a thread at a moment, and that of a marker.

use nyquist_profile::{Profile, StackId, ThreadIndex};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::errors::bad_request;
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
    let Some((until, is_waiting, stack)) = sampled_at(profile, thread, time) else {
        return Ok(of_stack(context, None));
    };
    Ok(MomentAnswer { time_ns: Some(until), is_waiting, ..of_stack(context, stack) })
}

/// The stack with a number. O(depth).
pub(super) fn stack<'a>(context: &QueryContext<'_, 'a>) -> Result<MomentAnswer<'a>, ViewerError> {
    let number: usize = context.parameters.required("stack")?;
    if number >= context.view.profile().stacks().len() {
        return Err(bad_request(format_args!("there is no stack {number}")));
    }
    Ok(of_stack(context, Some(StackId::from_index(number))))
}

fn of_stack<'a>(context: &QueryContext<'_, 'a>, stack: Option<StackId>) -> MomentAnswer<'a> {
    let profile = context.view.profile();
    let mut functions = FunctionTable::new();
    let (mut frames, mut depth, mut next) = (Vec::new(), 0, stack);
    while let Some(id) = next {
        let stack = profile.stack(id);
        if depth < MAX_FRAMES {
            frames.push(context.number(&mut functions, profile.frame(stack.frame).func));
        }
        depth += 1;
        next = stack.prefix;
    }
    MomentAnswer { time_ns: None, is_waiting: false, depth, frames, functions }
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
