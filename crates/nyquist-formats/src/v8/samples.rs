//! The samples of V8's CPU profiles: nodes at times.

use nyquist_profile::ThreadIndex;

use super::tree::Tree;
use crate::import::{Importer, MILLISECOND};
use crate::json::nanoseconds;
use crate::number_list::NumberList;

/// The samples of a thread: nodes at times.
pub(crate) struct CpuProfileSamples {
    thread: ThreadIndex,
    start: u64,
    /// The node of each sample.
    nodes: NumberList,
    /// The time between a sample and the one before it, as [`signed_step`].
    steps: NumberList,
    /// When the last sample ended, or 0 if that is not known.
    end: u64,
}

/// A difference in µs, as ns in the upper bits, and in the lowest one whether it is negative. V8's times sometimes go
/// backwards.
pub(super) fn signed_step(delta: f64) -> u64 {
    signed(nanoseconds(delta.abs(), 1000.0), delta < 0.0)
}

fn signed(step: u64, is_backwards: bool) -> u64 {
    step.min(u64::MAX >> 1) << 1 | u64::from(is_backwards)
}

fn is_backwards(step: u64) -> bool {
    step & 1 == 1
}

/// The time a step after another one.
fn stepped(clock: u64, step: u64) -> u64 {
    if is_backwards(step) { clock.saturating_sub(step >> 1) } else { clock.saturating_add(step >> 1) }
}

impl CpuProfileSamples {
    /// The samples of a recording that began at `start` ns.
    pub(crate) fn new(thread: ThreadIndex, start: u64) -> Self {
        Self::of(thread, start, NumberList::default(), NumberList::default())
    }

    /// Samples of these nodes, with a step before each. If steps are missing at the end, there is no time between
    /// samples.
    pub(super) fn of(thread: ThreadIndex, start: u64, nodes: NumberList, steps: NumberList) -> Self {
        Self { thread, start, nodes, steps, end: 0 }
    }

    /// Adds sampled nodes, each `deltas` µs after the previous one.
    pub(crate) fn add(&mut self, nodes: &[u64], deltas: &[f64]) {
        let deltas = deltas.iter().copied().chain(std::iter::repeat(0.0));
        for (&node, delta) in nodes.iter().zip(deltas) {
            self.nodes.push(node);
            self.steps.push(signed_step(delta));
        }
    }

    /// Adds sampled nodes with their times, in ns.
    pub(crate) fn add_at(&mut self, nodes: &[u64], times: &[u64]) {
        let mut clock = self.start;
        for (&node, &time) in nodes.iter().zip(times) {
            let step = signed(time.abs_diff(clock), time < clock);
            clock = stepped(clock, step);
            self.nodes.push(node);
            self.steps.push(step);
        }
    }

    /// Notes when the recording ended, in ns.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = end;
    }

    /// Adds the samples to the profile, and returns the number of samples whose node is not known.
    pub(crate) fn add_to(self, importer: &mut Importer, tree: &Tree) -> u64 {
        let Self { thread, start, nodes, steps, end } = self;
        let mut placed =
            PlacedSamples { importer, tree, thread, counts: vec![0; tree.stacks.len()], unknown: 0 };
        if steps.iter().any(is_backwards) {
            let mut taken: Vec<_> = times(start, steps.into_iter()).zip(nodes).collect();
            taken.sort_by_key(|&(time, _)| time);
            let end = end_of_last(start, taken.iter().map(|&(time, _)| time), end);
            placed.add(taken.into_iter(), end);
        } else {
            let end = end_of_last(start, times(start, steps.iter()).take(nodes.len()), end);
            // Their memory is freed while that of the profile's samples grows.
            placed.add(times(start, steps.into_iter()).zip(nodes), end);
        }
        placed.unknown
    }
}

/// The times of samples with a step before each, without end.
fn times(start: u64, steps: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    steps.chain(std::iter::repeat(0)).scan(start, |clock, step| {
        *clock = stepped(*clock, step);
        Some(*clock)
    })
}

/// When the last of samples in their order ends. It ends with the recording or, if the end is not known (0), it lasts
/// as long as the previous sample. If a recording ends with its last sample, or before it by V8's uneven clock, the
/// sample has no time. It lasts no longer than any other, because some programs state an end of another clock.
fn end_of_last(start: u64, times: impl Iterator<Item = u64>, end: u64) -> u64 {
    let (mut count, mut last, mut step, mut longest) = (0_u64, start, 0, 0);
    for time in times {
        (step, last) = (time.saturating_sub(last), time);
        longest = step.max(longest);
        count += 1;
    }
    match (count, end) {
        (0, _) => end,
        (1, 0) => last.saturating_add(MILLISECOND),
        (_, 0) => last.saturating_add(step),
        _ => end.min(last.saturating_add(if longest > 0 { longest } else { MILLISECOND })),
    }
}

/// The samples that a profile gets.
struct PlacedSamples<'a> {
    importer: &'a mut Importer,
    tree: &'a Tree,
    thread: ThreadIndex,
    /// The number of samples of each node so far.
    counts: Vec<u64>,
    unknown: u64,
}

impl PlacedSamples<'_> {
    /// Adds samples in their order, each with the time until the next one.
    fn add(&mut self, samples: impl Iterator<Item = (u64, u64)>, end: u64) {
        let mut before = None;
        for (time, node) in samples {
            if let Some((began, node)) = before.replace((time, node)) {
                self.add_one(node, began, time);
            }
        }
        if let Some((began, node)) = before {
            self.add_one(node, began, end);
        }
    }

    fn add_one(&mut self, node: u64, began: u64, ended: u64) {
        let Some(place) = self.tree.place(node) else {
            self.unknown += 1;
            return;
        };
        let (node, count) = (&self.tree.stacks[place], &mut self.counts[place]);
        let stack = node.of_sample(*count);
        self.importer.span(self.thread, began, (stack, node.is_idle), ended.saturating_sub(began));
        *count += 1;
    }
}
