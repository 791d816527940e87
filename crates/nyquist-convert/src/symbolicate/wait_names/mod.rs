//! Names what threads wait for, once the functions on their stacks have names.
//!
//! The recorder sees the system call of a wait. Locks, condition variables, channels and idle workers all wait
//! by the same call. Only the functions that have made it tell them apart.

mod function_name;
#[cfg(test)]
mod profile_tests;
mod row;
mod search;
mod table;
#[cfg(test)]
mod tests;

use crate::build::marker_kinds::wait_marker_name;
use crate::event::WaitReason;
use nyquist_profile::{
    CategoryColor, FuncId, Marker, MarkerValue, ProfileBuilder, StackId, ThreadIndex, well_known,
};
use rustc_hash::FxHashMap;
use search::{Answer, Clue, Found, clue, search};

/// The reasons that functions may know better.
const COMMON: [WaitReason; 8] = [
    WaitReason::Futex,
    WaitReason::Lock,
    WaitReason::ReadWriteLock,
    WaitReason::ConditionVariable,
    WaitReason::ThreadEnd,
    WaitReason::Park,
    WaitReason::Events,
    WaitReason::Sleep,
];

/// Replaces the reasons of waits by what the functions on their stacks say, in stacks and in markers. Linear in
/// the stacks and the markers of waits.
pub(super) fn name_waits(builder: &mut ProfileBuilder) {
    let labels = common_labels(builder);
    if labels.is_empty() {
        return;
    }
    let mut clues = Clues::default();
    let mut owned = vec![false; builder.profile().stacks().len()];
    for (index, is_owned) in owned.iter_mut().enumerate() {
        let stack = StackId::from_index(index);
        let func = builder.profile().frame(builder.profile().stack(stack).frame).func;
        let Some(first) = labels.get(&func) else { continue };
        if let Some(found) = clues.search(builder, *first, stack) {
            *is_owned = found.has_owner;
            rename(builder, stack, found.answer);
        }
    }
    for thread in 0..builder.profile().threads().len() {
        name_markers(builder, ThreadIndex::from_index(thread), &owned);
    }
}

/// The functions that stand for reasons which others may know better.
fn common_labels(builder: &ProfileBuilder) -> FxHashMap<FuncId, WaitReason> {
    let profile = builder.profile();
    let names = COMMON.map(|reason| (well_known::waiting_for(reason.text()), reason));
    let ids = (0..profile.funcs().len()).map(FuncId::from_index);
    let labels = ids.filter_map(|id| {
        let name = Some(profile.func_name(id)).filter(|_| profile.func(id).lib.is_none())?;
        Some((id, names.iter().find(|(label, _)| label == name)?.1))
    });
    labels.collect()
}

/// What functions say; each is asked once.
#[derive(Default)]
struct Clues {
    known: FxHashMap<FuncId, Clue>,
}

impl Clues {
    /// What a thread waits for, given the stack with the reason as its innermost frame.
    fn search(&mut self, builder: &ProfileBuilder, first: WaitReason, stack: StackId) -> Option<Found> {
        let profile = builder.profile();
        let functions = profile.stack_frames(stack).skip(1).map(|frame| {
            *self.known.entry(frame.func).or_insert_with(|| {
                let lib = profile.func(frame.func).lib.map_or("", |lib| &profile.lib(lib).name);
                clue(profile.func_name(frame.func), lib)
            })
        });
        search(first, functions)
    }
}

/// Gives a stack the frame of another reason.
fn rename(builder: &mut ProfileBuilder, stack: StackId, answer: Answer) {
    let (reason, category) = match answer {
        Answer::Reason(reason) => (reason.text().to_owned(), well_known::WAITING),
        Answer::Idle(runtime) => (well_known::idle_worker(runtime), well_known::IDLE_WORKERS),
    };
    let category = builder.add_category(category, CategoryColor::Grey);
    let frame = builder.intern_label_frame(&well_known::waiting_for(&reason), Some(category));
    builder.replace_frame(stack, frame);
}

/// Gives the markers of a thread's waits the reasons of their stacks. `owned` are the stacks of waits for locks
/// whose memory has the thread that holds them: the same memory of other locks has other things.
fn name_markers(builder: &mut ProfileBuilder, thread: ThreadIndex, owned: &[bool]) {
    let mut markers = std::mem::take(&mut builder.thread_mut(thread).markers);
    for marker in &mut markers {
        let profile = builder.profile();
        let is_wait =
            marker.schema.is_some_and(|id| profile.marker_schema(id).name == well_known::WAIT_SCHEMA);
        if let Some(stack) = marker.stack.filter(|_| is_wait) {
            name_marker(builder, marker, stack, owned.get(stack.index()) == Some(&true));
        }
    }
    builder.thread_mut(thread).markers = markers;
}

fn name_marker(builder: &mut ProfileBuilder, marker: &mut Marker, stack: StackId, has_owner: bool) {
    let profile = builder.profile();
    let innermost = profile.frame(profile.stack(stack).frame).func;
    let Some(reason) = well_known::wait_reason(profile.func_name(innermost)).map(str::to_owned) else {
        return;
    };
    let [own, object, holder, ..] = marker.values.as_mut_slice() else { return };
    if !has_owner {
        *holder = MarkerValue::Missing;
    }
    // The futex is the waiter's own, so that it would set equal waits apart.
    let is_own = reason == WaitReason::Park.text() || well_known::idle_runtime(&reason).is_some();
    if is_own {
        *object = MarkerValue::Missing;
    }
    if matches!(own, MarkerValue::String(id) if profile.string(*id) == reason) {
        return;
    }
    *own = MarkerValue::String(builder.intern_string(&reason));
    marker.name = builder.intern_string(&wait_marker_name(&reason));
}
