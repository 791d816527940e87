//! The boxes of a flame graph for a terminal: where they are, and how they are found again in a newer graph.

use crate::scale::Scale;
use crate::text::Names;
use nyquist_analysis::{FlameBox, FlameOptions, View};
use nyquist_formats::flame::{Color, FlameColors};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The least share of the whole that a box has. Narrower ones could be seen only after many steps of zooming.
const MIN_SHARE: f64 = 1e-6;

/// A flame graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlameBoxes {
    /// Callers before callees, and each followed by all that it calls.
    boxes: Vec<TerminalBox>,
    functions: Vec<BoxFunction>,
    /// The whole is the weight of all boxes of the first level, and of those that are too narrow.
    pub(crate) scale: Scale,
}

/// A box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TerminalBox {
    pub(crate) depth: usize,
    pub(crate) parent: Option<usize>,
    /// The index behind that of the last box that it calls, directly or not.
    end: usize,
    /// In weight from the left.
    start: u64,
    pub(crate) width: u64,
    pub(crate) own: u64,
    function: usize,
}

/// The function of a box, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoxFunction {
    /// The same in every graph.
    key: u64,
    pub(crate) name: String,
    pub(crate) lib: String,
    pub(crate) color: Color,
}

impl BoxFunction {
    fn of(flame_box: &FlameBox<'_>, names: Names) -> Self {
        let lib = flame_box.lib.unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (flame_box.name, lib).hash(&mut hasher);
        Self {
            key: hasher.finish(),
            name: names.show(flame_box.name),
            lib: Names::Full.show(lib),
            color: FlameColors::of_function(flame_box.name),
        }
    }
}

/// The columns of a box on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) x: u16,
    pub(crate) width: u16,
}

impl FlameBoxes {
    /// The flame graph of a view. O(nodes).
    pub(crate) fn of(view: &View<'_>, inverted: bool, names: Names) -> Self {
        let graph =
            view.flame_graph(&FlameOptions { inverted, min_share: MIN_SHARE, ..FlameOptions::default() });
        let mut functions = Vec::new();
        let mut known = HashMap::new();
        let mut boxes: Vec<TerminalBox> = Vec::with_capacity(graph.boxes.len());
        for flame_box in &graph.boxes {
            let function = *known.entry(flame_box.func).or_insert_with(|| {
                functions.push(BoxFunction::of(flame_box, names));
                functions.len() - 1
            });
            boxes.push(TerminalBox {
                depth: flame_box.depth,
                parent: flame_box.parent,
                end: 0,
                start: flame_box.start,
                width: flame_box.width,
                own: flame_box.self_amount.weight,
                function,
            });
        }
        set_ends(&mut boxes);
        Self { boxes, functions, scale: Scale { total: graph.width, ..Scale::of(view) } }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    pub(crate) fn get(&self, index: usize) -> &TerminalBox {
        &self.boxes[index]
    }

    pub(crate) fn function(&self, index: usize) -> &BoxFunction {
        &self.functions[self.boxes[index].function]
    }

    /// The keys of the functions from the first level to a box. They lead to it in other graphs, too.
    pub(crate) fn path_of(&self, index: usize) -> Vec<u64> {
        let up = std::iter::successors(Some(index), |&index| self.boxes[index].parent);
        let mut path: Vec<_> = up.map(|index| self.function(index).key).collect();
        path.reverse();
        path
    }

    /// The box at the end of a path, or the last that exists on the way to it.
    pub(crate) fn find(&self, path: &[u64]) -> Option<usize> {
        let mut found = None;
        for key in path {
            let Some(next) = self.children(found).find(|&child| self.function(child).key == *key) else {
                break;
            };
            found = Some(next);
        }
        found
    }

    /// The boxes that a box calls, or those of the first level.
    pub(crate) fn children(&self, index: Option<usize>) -> impl Iterator<Item = usize> {
        let (first, end) = match index {
            Some(index) => (index + 1, self.boxes[index].end),
            None => (0, self.boxes.len()),
        };
        let next = move |&child: &usize| Some(self.boxes[child].end).filter(|&next| next < end);
        std::iter::successors(Some(first).filter(|&first| first < end), next)
    }

    /// The boxes that are at least a column wide if `zoomed`, or the whole, fills the columns. The callers of
    /// `zoomed` fill them, too. O(boxes that are visible, and their children).
    pub(crate) fn placed(&self, zoomed: Option<usize>, columns: u16) -> Vec<(usize, Span)> {
        let mut placed = Vec::new();
        let mut up = zoomed.and_then(|index| self.boxes[index].parent);
        while let Some(index) = up {
            placed.push((index, Span { x: 0, width: columns }));
            up = self.boxes[index].parent;
        }
        placed.reverse();
        let (mut next, end) = match zoomed {
            Some(index) => (index, self.boxes[index].end),
            None => (0, self.boxes.len()),
        };
        while next < end {
            let span = self.span(next, zoomed, columns);
            if span.width == 0 {
                next = self.boxes[next].end;
                continue;
            }
            placed.push((next, span));
            next += 1;
        }
        placed
    }

    fn span(&self, index: usize, zoomed: Option<usize>, columns: u16) -> Span {
        let (left, width) = match zoomed {
            Some(zoomed) => (self.boxes[zoomed].start, self.boxes[zoomed].width),
            None => (0, self.scale.total),
        };
        let column = |weight: u64| {
            let column =
                u128::from(weight.saturating_sub(left)) * u128::from(columns) / u128::from(width.max(1));
            u16::try_from(column).unwrap_or(columns).min(columns)
        };
        let found = &self.boxes[index];
        let x = column(found.start);
        Span { x, width: column(found.start.saturating_add(found.width)) - x }
    }

    /// The weight of the functions that match, below `zoomed`, each stack once.
    pub(crate) fn weight_of(&self, zoomed: Option<usize>, matches: impl Fn(&str) -> bool) -> u64 {
        let (mut next, end) = zoomed.map_or((0, self.boxes.len()), |index| (index, self.boxes[index].end));
        let is_found: Vec<bool> = self.functions.iter().map(|function| matches(&function.name)).collect();
        let mut sum = 0_u64;
        while next < end {
            let found = &self.boxes[next];
            if is_found[found.function] {
                sum = sum.saturating_add(found.width);
                next = found.end;
            } else {
                next += 1;
            }
        }
        sum
    }
}

/// Sets the end of each box, from the last to the first.
fn set_ends(boxes: &mut [TerminalBox]) {
    for index in (0..boxes.len()).rev() {
        let end = boxes[index].end.max(index + 1);
        boxes[index].end = end;
        if let Some(parent) = boxes[index].parent {
            boxes[parent].end = boxes[parent].end.max(end);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use nyquist_analysis::{Index, Selection};
    use nyquist_profile::{Frame, Func, Meta, Process, ProfileBuilder, Sample, Thread};

    /// A graph of stacks, the outermost function first, each with its weight.
    pub(in crate::flame_screen) fn graph(stacks: &[(&str, u64)]) -> FlameBoxes {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (time, (functions, weight)) in (0..).zip(stacks) {
            let mut stack = None;
            for function in functions.split(' ') {
                let name = builder.intern_string(function);
                let func = builder.intern_func(Func::new(name, None));
                let frame = builder.intern_frame(Frame::label(func));
                stack = Some(builder.intern_stack(stack, frame));
            }
            builder.add_sample(thread, Sample { weight: *weight, ..Sample::new(time * 1_000_000, stack, 1) });
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        FlameBoxes::of(&View::new(&index, &Selection::default()), false, Names::Short)
    }

    pub(in crate::flame_screen) fn example() -> FlameBoxes {
        graph(&[
            ("main alpha deep deeper", 40),
            ("main alpha", 10),
            ("main beta", 30),
            ("other tiny", 1),
            ("other", 19),
        ])
    }

    fn names(boxes: &FlameBoxes, zoomed: Option<usize>, columns: u16) -> String {
        let placed = boxes.placed(zoomed, columns);
        let text = placed.iter().map(|&(index, Span { x, width })| {
            format!("{} {}@{x}+{width}", boxes.get(index).depth, boxes.function(index).name)
        });
        text.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn boxes_fill_columns_and_narrow_ones_are_left() {
        let boxes = example();
        let all = "0 main@0+8, 1 alpha@0+5, 2 deep@0+4, 3 deeper@0+4, 1 beta@5+3, 0 other@8+2";
        assert_eq!(names(&boxes, None, 10), all);
        let deep = boxes.find(&boxes.path_of(2));
        assert_eq!(deep, Some(2));
        assert_eq!(names(&boxes, deep, 10), "0 main@0+10, 1 alpha@0+10, 2 deep@0+10, 3 deeper@0+10");
        assert_eq!(names(&boxes, None, 0), "");
    }

    #[test]
    fn a_path_leads_to_the_same_box_in_a_newer_graph() {
        let (old, new) = (example(), graph(&[("aaa", 5), ("main alpha", 1)]));
        let path = old.path_of(2);
        let found = new.find(&path).unwrap();
        assert_eq!(new.function(found).name, "alpha", "the caller that still exists");
        assert_eq!(graph(&[("x", 1)]).find(&path), None);
    }

    #[test]
    fn a_stack_counts_once_for_a_search() {
        let boxes = graph(&[("a b a", 5), ("c a", 2), ("c", 3)]);
        assert_eq!(boxes.weight_of(None, |name| name == "a"), 7);
        let of_c = boxes.children(None).nth(1);
        assert_eq!(boxes.weight_of(of_c, |name| name == "a"), 2);
    }
}
