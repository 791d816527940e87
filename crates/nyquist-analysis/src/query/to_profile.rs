//! Converts a view to a profile, so that all functions for profiles also work for selections.

use nyquist_profile::{
    CategoryPair, Frame, Func, FuncId, LibId, Marker, MarkerTiming, Profile, ProfileBuilder, Sample, Samples,
    StackId, ThreadIndex,
};

use crate::index::forest::NONE;
use crate::view::View;

impl View<'_> {
    /// The profile of the view's samples with their stacks after filters and transforms. It includes the
    /// markers of the selected threads that are at least partly in the selected times. O(profile).
    pub fn to_profile(&self) -> Profile {
        let (mut builder, _) = ProfileBuilder::rebuild(self.profile().clone());
        let stacks = self.intern_stacks(&mut builder);
        let mut is_chosen = vec![false; self.profile().threads().len()];
        for &id in &self.chosen.threads {
            is_chosen[id.index()] = true;
            let thread = builder.thread_mut(id);
            thread.samples = self.samples_with(id, &stacks);
            thread.markers = self.markers_with(id, &stacks);
        }
        let mut is_chosen = is_chosen.into_iter();
        builder.retain_threads(|_| is_chosen.next() == Some(true));
        builder.finish()
    }

    fn samples_with(&self, thread: ThreadIndex, stacks: &[Option<StackId>]) -> Samples {
        let samples = self.samples_of(thread).map(|(chosen, node)| Sample {
            stack: node.and_then(|node| stacks[node as usize]),
            ..chosen.sample
        });
        samples.collect()
    }

    fn markers_with(&self, thread: ThreadIndex, stacks: &[Option<StackId>]) -> Vec<Marker> {
        let times = self.selection.times();
        let is_in_time = |marker: &&Marker| match marker.timing {
            MarkerTiming::Instant(time)
            | MarkerTiming::IntervalStart(time)
            | MarkerTiming::IntervalEnd(time) => times.contains(&time),
            MarkerTiming::Interval(start, end) => start < times.end && end >= times.start,
        };
        let new_stack = |stack: StackId| {
            let node = self.derived.target(self.index.node_of_stack[stack.index()])?;
            stacks[node as usize]
        };
        // Blocks belong to the time and the stack that allocated them, as samples do.
        let is_left_out = |old: &Marker, stack: Option<StackId>| {
            self.profile().is_allocated_group(old)
                && (!times.contains(&old.timing.first()) || old.stack.is_some() && stack.is_none())
        };
        let markers = self.profile().thread(thread).markers.iter().filter(is_in_time);
        let with_stacks = markers.map(|marker| (marker, marker.stack.and_then(new_stack)));
        let retained = with_stacks.filter(|(marker, stack)| !is_left_out(marker, *stack));
        retained.map(|(marker, stack)| Marker { stack, ..marker.clone() }).collect()
    }

    /// Adds the stacks of the view's nodes to a profile that has none.
    fn intern_stacks(&self, builder: &mut ProfileBuilder) -> Vec<Option<StackId>> {
        let forest = self.forest();
        let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(forest.len());
        let mut inline_depths: Vec<u16> = Vec::with_capacity(forest.len());
        for node in 0..forest.len() {
            let parent = Some(forest.parent[node]).filter(|&parent| parent != NONE);
            let prefix = parent.and_then(|parent| stacks[parent as usize]);
            let mut frame = self.frame_row(node, builder);
            // A frame whose callers were removed is not inlined, or is inlined into a frame further out.
            frame.inline_depth = match parent {
                Some(parent) if self.is_inlined_into(node, parent as usize) => {
                    inline_depths[parent as usize] + 1
                }
                _ => 0,
            };
            inline_depths.push(frame.inline_depth);
            let frame = builder.intern_frame(frame);
            stacks.push(Some(builder.intern_stack(prefix, frame)));
        }
        stacks
    }

    fn frame_row(&self, node: usize, builder: &mut ProfileBuilder) -> Frame {
        let source = self.profile();
        let func = self.func_row(node, builder);
        let func = builder.intern_func(func);
        let category = self.frame_category(node);
        if self.is_collapsed_lib(node) {
            return Frame { category, ..Frame::label(func) };
        }
        let frame = self.frame_of(node);
        let symbol = frame.native_symbol.map(|symbol| *source.native_symbol(symbol));
        let native_symbol = symbol.map(|symbol| builder.intern_native_symbol(symbol));
        Frame { func, category, native_symbol, ..*frame }
    }

    /// The category to write, so that the frame keeps its category under other callers.
    fn frame_category(&self, node: usize) -> Option<CategoryPair> {
        let category = &self.forest().category;
        let parent = self.forest().parent[node];
        let inherited = if parent == NONE { None } else { category[parent as usize] };
        self.frame_of(node).category.or(category[node].filter(|_| category[node] != inherited))
    }

    fn is_inlined_into(&self, node: usize, parent: usize) -> bool {
        let (inner, outer) = (self.frame_of(node), self.frame_of(parent));
        inner.inline_depth > outer.inline_depth
            && (inner.address, inner.native_symbol) == (outer.address, outer.native_symbol)
            && !self.is_collapsed_lib(node)
            && !self.is_collapsed_lib(parent)
    }

    fn is_collapsed_lib(&self, node: usize) -> bool {
        self.forest().func[node] as usize >= self.profile().funcs().len()
    }

    fn frame_of(&self, node: usize) -> &Frame {
        let profile = self.profile();
        profile.frame(profile.stacks()[self.forest().stack[node] as usize].frame)
    }

    fn func_row(&self, node: usize, builder: &mut ProfileBuilder) -> Func {
        let funcs = self.profile().funcs();
        let index = self.forest().func[node] as usize;
        match funcs.get(index) {
            Some(func) => *func,
            None => {
                let name = builder.intern_string(self.function(FuncId::from_index(index)).name);
                Func::new(name, Some(LibId::from_index(index - funcs.len())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{ProcessIndex, firefox};

    use super::*;
    use crate::Pattern;
    use crate::selection::Selection;
    use crate::selection::transform::Transform;
    use crate::test_profile::{TestProfile, tree_text, with_view};

    fn example() -> Profile {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.sample("user:main#1@app f#2@app kernel:sys inherits", 1);
        test.sample("user:main#1@app g#3@libg h#4@libg f#7@app", 2);
        test.thread("2", "b");
        test.sample("main#1@app", 4);
        test.finish()
    }

    /// Checks that the view's profile has the same tree as the view, and the same derived data.
    fn check(selection: &Selection, expected: &str) {
        with_view(&example(), selection, |view| {
            let profile = view.to_profile();
            with_view(&profile, &Selection::default(), |again| {
                assert_eq!(tree_text(again.call_tree()), expected, "{selection:?}");
                assert_eq!(tree_text(again.call_tree()), tree_text(view.call_tree()), "{selection:?}");
                assert_eq!(again.total().weight, view.total().weight);
                let categories = |view: &View<'_>| {
                    let rows = view.by_category().into_iter();
                    rows.map(|row| (row.name.map(str::to_owned), row.self_amount.weight)).collect::<Vec<_>>()
                };
                assert_eq!(categories(again), categories(view), "{selection:?}");
            });
            let mut json = Vec::new();
            firefox::write(&profile, firefox::WriteOptions::default(), &mut json).unwrap();
            let problems = firefox::check_bytes(&json).unwrap();
            assert!(problems.is_empty(), "{selection:?}: {problems:?}");
        });
    }

    #[test]
    fn the_profile_of_a_view_has_what_the_view_has() {
        let all = Selection::default();
        check(&all, "main:7,4 .g:2,0 ..h:2,0 ...f:2,2 .f:1,0 ..sys:1,0 ...inherits:1,1");
        let first = Some(vec![ProcessIndex::from_index(0)]);
        check(
            &Selection { processes: first, ..all.clone() },
            "main:3,0 .g:2,0 ..h:2,0 ...f:2,2 .f:1,0 ..sys:1,0 ...inherits:1,1",
        );
        let hide = vec![Pattern::regex("sys|^h$").unwrap()];
        check(&Selection { hide, ..all.clone() }, "main:7,4 .g:2,0 ..f:2,2 .f:1,0 ..inherits:1,1");
        let transforms = vec![Transform::CollapseLib(LibId::from_index(1))];
        check(
            &Selection { transforms, ..all.clone() },
            "main:7,4 .libg:2,0 ..f:2,2 .f:1,0 ..sys:1,0 ...inherits:1,1",
        );
        check(&Selection { threads: Some(vec![]), ..all }, "");
    }

    #[test]
    fn unselected_threads_are_not_in_the_profile() {
        let selection =
            Selection { processes: Some(vec![ProcessIndex::from_index(1)]), ..Selection::default() };
        with_view(&example(), &selection, |view| {
            let profile = view.to_profile();
            assert_eq!((profile.threads().len(), profile.processes().len()), (1, 1));
            assert_eq!(profile.threads()[0].name, "b");
        });
    }
}
