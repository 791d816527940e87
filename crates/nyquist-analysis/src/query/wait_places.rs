//! The functions in which threads waited.

use std::cmp::Reverse;

use nyquist_profile::{Frame, FuncId, Profile, StackId, well_known};

use crate::query::waits::WaitedFor;

/// A function in which threads waited.
#[derive(Clone, Copy, Debug)]
pub struct WaitPlace<'p> {
    /// The function.
    pub func: FuncId,
    /// Its name.
    pub name: &'p str,
    /// The total time, in ns.
    pub total_ns: u64,
}

/// The functions in which threads waited, the one with the longest time first.
pub fn wait_places<'p>(profile: &'p Profile, wait: &WaitedFor<'_>) -> Vec<WaitPlace<'p>> {
    let mut places: Vec<WaitPlace<'_>> = Vec::new();
    for (stack, time) in &wait.stacks {
        let Some(func) = place(profile, *stack).map(|frame| frame.func) else { continue };
        let name = profile.func_name(func);
        match places.iter_mut().find(|known| known.name == name) {
            Some(known) => known.total_ns = known.total_ns.saturating_add(*time),
            None => places.push(WaitPlace { func, name, total_ns: *time }),
        }
    }
    places.sort_by_key(|place| Reverse(place.total_ns));
    places
}

/// The place where a thread waits, for the programmer: the innermost function outside of the kernel and of
/// the language's libraries.
fn place(profile: &Profile, stack: StackId) -> Option<&Frame> {
    let lib = |frame: &Frame| profile.func(frame.func).lib.map_or("", |lib| &profile.lib(lib).name);
    // The names of the kernel and of its modules are in brackets.
    let is_kernels = |frame: &Frame| lib(frame).starts_with('[');
    let is_own = |frame: &&Frame| {
        let (name, lib) = (profile.func_name(frame.func), lib(frame));
        let is_of_language = ["std::", "core::", "<std::", "<core::", "__", "runtime."];
        let of_language = ["libc.so", "libc-", "libpthread", "ld-", "ld.so", "libstdc++"];
        !is_reason(name)
            && !is_of_language.iter().any(|start| name.starts_with(start))
            && !of_language.iter().any(|start| lib.starts_with(start))
            && !is_kernels(frame)
    };
    let innermost = || profile.stack_frames(stack).find(|it| !is_reason(profile.func_name(it.func)));
    let innermost_of_user = || {
        let mut frames = profile.stack_frames(stack);
        frames.find(|it| !is_reason(profile.func_name(it.func)) && !is_kernels(it))
    };
    profile.stack_frames(stack).find(is_own).or_else(innermost_of_user).or_else(innermost)
}

/// Whether a function is only the reason of a wait.
fn is_reason(name: &str) -> bool {
    name == well_known::RUNNABLE || well_known::wait_reason(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::markers::Durations;
    use nyquist_profile::{Meta, ProfileBuilder};

    #[test]
    fn each_function_that_waited_is_a_place() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let [stop, other] = ["w_stop", "w_other"].map(|name| builder.intern_label(None, name, None));
        let [stopped, reading] = [(stop, "[waiting: child process]"), (other, "[waiting: child process]")]
            .map(|(within, reason)| builder.intern_label(Some(within), reason, None));
        let profile = builder.finish();
        let wait = WaitedFor {
            unseen_ns: 0,
            reason: "child process",
            object: None,
            process: "sh",
            durations: Durations {
                count: 3,
                total_ns: 929,
                min_ns: 200,
                p50_ns: 300,
                p90_ns: 429,
                p99_ns: 429,
                max_ns: 429,
            },
            holders: Vec::new(),
            wakers: Vec::new(),
            stacks: vec![(stopped, 300), (reading, 429), (stop, 200)],
        };
        let places: Vec<_> =
            wait_places(&profile, &wait).into_iter().map(|place| (place.name, place.total_ns)).collect();
        assert_eq!(places, [("w_stop", 500), ("w_other", 429)]);
    }
}
