//! Iterates over samples in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nyquist_profile::{Frame, FuncId, Sample, ThreadIndex};

use crate::amount::Amount;
use crate::selection::selected_samples::SelectedSample;
use crate::view::View;

/// A sample of a view.
#[derive(Clone, Copy, Debug)]
pub struct ViewSample {
    /// The thread.
    pub thread: ThreadIndex,
    /// The sample, with its stack before filters and transforms.
    pub sample: Sample,
    /// Its amount.
    pub amount: Amount,
    node: Option<u32>,
}

/// A frame of a stack after filters and transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewFrame<'a> {
    /// The function. The function of a collapsed lib is not in the profile.
    pub func: FuncId,
    /// The frame in the profile. For a collapsed lib, the first of the collapsed frames.
    pub frame: &'a Frame,
}

impl<'a> View<'a> {
    /// The samples, ordered by time, then by thread. O(log threads) each.
    pub fn samples(&self) -> impl Iterator<Item = ViewSample> {
        let mut threads: Vec<_> =
            self.chosen.threads.iter().map(|&thread| self.samples_of(thread).peekable()).collect();
        let time = |(chosen, _): &(SelectedSample, _)| chosen.sample.time;
        let mut next: BinaryHeap<_> = threads
            .iter_mut()
            .enumerate()
            .filter_map(|(index, samples)| Some(Reverse((time(samples.peek()?), index))))
            .collect();
        std::iter::from_fn(move || {
            let Reverse((_, index)) = next.pop()?;
            let samples = threads.get_mut(index)?;
            let (chosen, node) = samples.next()?;
            next.extend(samples.peek().map(|sample| Reverse((time(sample), index))));
            let thread = self.chosen.threads[index];
            Some(ViewSample { thread, sample: chosen.sample, amount: chosen.amount, node })
        })
    }

    /// The frames of a sample of this view, from the innermost to the outermost.
    pub fn frames(&self, sample: &ViewSample) -> impl Iterator<Item = ViewFrame<'a>> {
        let profile = self.profile();
        let forest = self.forest();
        let nodes = sample.node.into_iter().flat_map(|node| forest.ancestors(node));
        nodes.map(move |node| ViewFrame {
            func: FuncId::from_index(forest.func[node as usize] as usize),
            frame: profile.frame(profile.stacks()[forest.stack[node as usize] as usize].frame),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Pattern;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    #[test]
    fn samples_come_in_the_order_of_time() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.sample("f g", 1);
        test.sample("f hidden", 2);
        test.sample("hidden", 4);
        test.thread("1", "b");
        test.sample("f hidden g", 8);
        test.sample("", 16);
        let selection =
            Selection { hide: vec![Pattern::substring("hidden").unwrap()], ..Selection::default() };
        let profile = test.finish();
        with_view(&profile, &selection, |view| {
            let samples = view.samples().map(|sample| {
                let names = view.frames(&sample).map(|frame| view.function(frame.func).name);
                (sample.thread.index(), sample.sample.time, sample.amount.weight, names.collect::<Vec<_>>())
            });
            let expected =
                [(0, 0, 1, vec!["g", "f"]), (1, 0, 8, vec!["g", "f"]), (0, 1_000_000, 2, vec!["f"])];
            assert_eq!(samples.collect::<Vec<_>>(), expected);
        });
    }
}
