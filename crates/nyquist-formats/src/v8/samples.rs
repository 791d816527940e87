//! The samples of V8's CPU profiles: nodes at times.

use std::fmt;

use nyquist_profile::{Samples, StackId, ThreadIndex};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use super::tree::Tree;
use crate::import::{Importer, MILLISECOND};
use crate::json::nanoseconds;

/// The number of samples among which a later one of the file may be the earlier one, without cost. V8's clock goes back
/// by a few samples.
const WINDOW: usize = 1 << 12;

/// A difference in µs, as ns in the upper bits, and in the lowest one whether it is negative. V8's times sometimes go
/// backwards.
pub(crate) fn signed_step(delta: f64) -> u64 {
    signed(nanoseconds(delta.abs(), 1000.0), delta < 0.0)
}

fn signed(step: u64, is_backwards: bool) -> u64 {
    step.min(u64::MAX >> 1) << 1 | u64::from(is_backwards)
}

/// A difference in µs in a file, as a [`signed_step`]. Nearly all are whole numbers, which need no arithmetic of
/// fractions.
pub(super) struct Step(pub(super) u64);

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_f64(StepVisitor)
    }
}

struct StepVisitor;

impl Visitor<'_> for StepVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of microseconds")
    }

    fn visit_u64<E>(self, micros: u64) -> Result<Step, E> {
        Ok(Step(signed(micros.saturating_mul(1000), false)))
    }

    fn visit_i64<E>(self, micros: i64) -> Result<Step, E> {
        Ok(Step(signed(micros.unsigned_abs().saturating_mul(1000), micros < 0)))
    }

    fn visit_f64<E>(self, micros: f64) -> Result<Step, E> {
        Ok(Step(signed_step(micros)))
    }
}

/// The time a step after another one.
fn stepped(clock: u64, step: u64) -> u64 {
    if step & 1 == 1 { clock.saturating_sub(step >> 1) } else { clock.saturating_add(step >> 1) }
}

/// A sample.
#[derive(Clone, Copy)]
struct Observation {
    time: u64,
    /// Its stack, and whether it idles. `None` if its node is not known.
    place: Option<(Option<StackId>, bool)>,
}

/// Adds the samples of a thread to a profile, in the order of their times, each with the time until the next one.
/// They are added while they are read, so that they are in memory once.
pub(crate) struct CpuProfileSamples<'a> {
    importer: &'a mut Importer,
    tree: &'a Tree,
    thread: ThreadIndex,
    /// The number of samples that the thread had before.
    others: usize,
    /// When the recording began.
    start: u64,
    /// The time of the last sample that was read.
    clock: u64,
    /// The last ones that were read, which are not in the profile.
    recent: Vec<Observation>,
    /// The number of those that [`recent`](Self::recent) keeps.
    window: usize,
    placed: Placed,
    /// The number of samples of each node so far.
    counts: Vec<u64>,
    unknown: u64,
}

/// What is known of samples that are in their order.
struct Placed {
    /// The last one, which lasts until the next.
    last: Option<Observation>,
    count: u64,
    /// The times between them, and before the first one: the last and the longest.
    step: u64,
    longest: u64,
}

impl Placed {
    const NONE: Self = Self { last: None, count: 0, step: 0, longest: 0 };

    /// When the last sample ends, if the recording ended at `end`, or that is not known (0). It ends with the recording
    /// or, if the end is not known, it lasts as long as the previous sample. If a recording ends with its last sample,
    /// or before it by V8's uneven clock, the sample has no time. It lasts no longer than any other, because some
    /// programs state an end of another clock.
    fn end_of(&self, last: u64, end: u64) -> u64 {
        match (self.count, end) {
            (1, 0) => last.saturating_add(MILLISECOND),
            (_, 0) => last.saturating_add(self.step),
            _ => end.min(last.saturating_add(if self.longest > 0 { self.longest } else { MILLISECOND })),
        }
    }
}

impl<'a> CpuProfileSamples<'a> {
    /// The samples of a thread, of a recording that began at `start` ns.
    pub(crate) fn new(
        importer: &'a mut Importer,
        tree: &'a Tree,
        (thread, start): (ThreadIndex, u64),
    ) -> Self {
        let others = importer.builder().thread_mut(thread).samples.len();
        let counts = vec![0; tree.stacks.len()];
        Self {
            importer,
            tree,
            thread,
            others,
            start,
            clock: start,
            recent: Vec::new(),
            window: WINDOW,
            placed: Placed::NONE,
            counts,
            unknown: 0,
        }
    }

    /// Adds a sampled node, a [`signed_step`] after the sample before.
    pub(crate) fn add_after(&mut self, node: u64, step: u64) {
        self.add(node, stepped(self.clock, step));
    }

    /// Adds a sampled node at a time, in ns.
    pub(crate) fn add(&mut self, node: u64, time: u64) {
        self.clock = time;
        let place = self.tree.place(node).map(|place| {
            let (node, count) = (&self.tree.stacks[place], &mut self.counts[place]);
            *count += 1;
            (self.tree.of_sample(node, *count - 1), node.is_idle)
        });
        self.unknown += u64::from(place.is_none());
        self.recent.push(Observation { time, place });
        if self.recent.len() / 2 >= self.window {
            self.place(self.window);
        }
    }

    /// Adds the rest, and returns the number of samples whose node is not known. `end` is when the recording ended, in
    /// ns, or 0 if that is not known.
    pub(crate) fn finish(mut self, end: u64) -> u64 {
        self.place(usize::MAX);
        if let Some(last) = self.placed.last {
            self.add_one(last, self.placed.end_of(last.time, end));
        }
        self.unknown
    }

    /// Puts this many of the recent ones in the profile.
    fn place(&mut self, count: usize) {
        self.recent.sort_by_key(|sample| sample.time);
        let first = self.recent.first().map(|sample| sample.time);
        let last = self.placed.last.map(|sample| sample.time);
        if first < last {
            self.take_back();
            self.recent.sort_by_key(|sample| sample.time);
        }
        let mut recent = std::mem::take(&mut self.recent);
        for sample in recent.drain(..count.min(recent.len())) {
            let before = self.placed.last.replace(sample);
            let step = sample.time.saturating_sub(before.map_or(self.start, |before| before.time));
            self.placed.count += 1;
            (self.placed.step, self.placed.longest) = (step, self.placed.longest.max(step));
            if let Some(before) = before {
                self.add_one(before, sample.time);
            }
        }
        self.recent = recent;
    }

    fn add_one(&mut self, sample: Observation, end: u64) {
        if let Some(place) = sample.place {
            self.importer.span(self.thread, sample.time, place, end.saturating_sub(sample.time));
        }
    }

    /// Takes all samples out of the profile, because a later one of the file is before them. From then on none is added
    /// before all are read.
    fn take_back(&mut self) {
        let samples = &mut self.importer.builder().thread_mut(self.thread).samples;
        let mut all: Vec<Observation> = Vec::new();
        let mut until = None;
        let gap = |until: Option<u64>, began: u64| {
            until.filter(|&until| until < began).map(|time| Observation { time, place: None })
        };
        for sample in samples.range(self.others..samples.len()) {
            let time = sample.time - sample.weight;
            all.extend(gap(until, time));
            all.push(Observation { time, place: Some((sample.stack, sample.off_cpu)) });
            until = Some(sample.time);
        }
        *samples = samples.range(0..self.others).collect::<Samples>();
        all.extend(self.placed.last.and_then(|last| gap(until, last.time)));
        all.extend(self.placed.last);
        all.append(&mut self.recent);
        (self.recent, self.placed, self.window) = (all, Placed::NONE, usize::MAX);
    }
}
