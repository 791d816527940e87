//! The compiled functions that hold inlined code.

use nyquist_profile::{FuncId, Profile, StackId};

/// The compiled functions into which others were inlined, those with the most stacks first. `is_requested` says for
/// which functions it is asked. O(stacks × depth of inlined calls).
pub fn inlined_into(profile: &Profile, is_requested: impl Fn(FuncId) -> bool) -> Vec<FuncId> {
    let mut found: Vec<(FuncId, usize)> = Vec::new();
    for (index, stack) in profile.stacks().iter().enumerate() {
        let frame = profile.frame(stack.frame);
        if frame.inline_depth == 0 || !is_requested(frame.func) {
            continue;
        }
        let Some(outer) =
            profile.stack_frames(StackId::from_index(index)).find(|frame| frame.inline_depth == 0)
        else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == outer.func) {
            Some((_, count)) => *count += 1,
            None => found.push((outer.func, 1)),
        }
    }
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found.into_iter().map(|(func, _)| func).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Frame, Func, Meta, ProfileBuilder};

    #[test]
    fn the_function_around_inlined_ones_is_found() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
        let mut stack = None;
        for (depth, name) in [(0, "main"), (0, "work"), (1, "inner"), (2, "innermost")] {
            let name = builder.intern_string(name);
            let func = builder.intern_func(Func::new(name, None));
            let frame = builder.intern_frame(Frame { inline_depth: depth, ..Frame::label(func) });
            stack = Some(builder.intern_stack(stack, frame));
        }
        let profile = builder.finish();
        let names = |requested: &str| {
            let found = inlined_into(&profile, |func| profile.func_name(func) == requested);
            found.into_iter().map(|func| profile.func_name(func).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("innermost"), ["work"]);
        assert_eq!(names("inner"), ["work"]);
        assert!(names("work").is_empty());
    }
}
