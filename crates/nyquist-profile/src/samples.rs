//! The samples of a thread in little room: twelve bytes each, where their figures are ordinary.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;
use std::slice;

use crate::id::StackId;
use crate::thread::Sample;

/// So many samples count their times from the same one.
const BLOCK: usize = 32;

/// A thread's samples, one after another. They take 12 bytes each instead of the 32 of a [`Sample`], which is what goes in
/// and comes out, exactly; one of unusual figures (far from its neighbours in time, or of a great weight or CPU delta) takes 36.
#[derive(Clone, Default)]
pub struct Samples {
    rows: Vec<Row>,
    /// The time from which those of each [`BLOCK`] of rows count.
    bases: Vec<u64>,
    /// What the rows of some samples have no room for.
    large: Vec<Large>,
}

/// A sample.
#[derive(Clone, Copy)]
struct Row {
    /// Since the base of its block, in ns; of [`Figures::LARGE`], the place in [`Samples::large`].
    time: u32,
    stack: Option<StackId>,
    figures: Figures,
}

/// What is not in the row of a sample.
#[derive(Clone, Copy)]
struct Large {
    time: u64,
    cpu_delta: u64,
    weight: u32,
    off_cpu: bool,
}

impl Samples {
    /// No samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// No samples, and room for so many ordinary ones.
    pub fn with_capacity(capacity: usize) -> Self {
        let (rows, bases) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity.div_ceil(BLOCK)));
        Self { rows, bases, large: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The sample at a place. O(1).
    #[inline]
    pub fn get(&self, place: usize) -> Option<Sample> {
        Some(self.unpacked(place, *self.rows.get(place)?))
    }

    /// The sample of the row at a place.
    #[inline]
    fn unpacked(&self, place: usize, row: Row) -> Sample {
        let Row { stack, figures, .. } = row;
        if figures.is_on_cpu() {
            return self.with_figures(place, row, figures.split(false));
        }
        if figures == Figures::LARGE {
            let Large { time, cpu_delta, weight, off_cpu } = self.large[row.time as usize];
            return Sample { time, cpu_delta, stack, weight, off_cpu };
        }
        Sample { off_cpu: true, ..self.with_figures(place, row, figures.split(true)) }
    }

    #[inline]
    fn with_figures(&self, place: usize, row: Row, (weight, cpu_delta): (u32, u32)) -> Sample {
        let time = self.bases[place / BLOCK] + u64::from(row.time);
        Sample { time, cpu_delta: cpu_delta.into(), stack: row.stack, weight, off_cpu: false }
    }

    /// The first one.
    pub fn first(&self) -> Option<Sample> {
        self.get(0)
    }

    /// The last one.
    pub fn last(&self) -> Option<Sample> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All of them in their order.
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len())
    }

    /// Those at some places, as far as they are there.
    pub fn range(&self, places: Range<usize>) -> Iter<'_> {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        Iter { samples: self, next: start, rows: self.rows[start..end].iter() }
    }

    /// How many are older than `time`, where they are in the order of time. O(log samples).
    pub fn count_before(&self, time: u64) -> usize {
        let is_before = |place| self.get(place).is_some_and(|sample| sample.time < time);
        let (mut known, mut beyond) = (0, self.len());
        while known < beyond {
            let middle = known.midpoint(beyond);
            if is_before(middle) {
                known = middle + 1;
            } else {
                beyond = middle;
            }
        }
        known
    }

    /// Adds a sample at the end. O(1).
    #[inline]
    pub fn push(&mut self, sample: Sample) {
        let place = self.len();
        if place.is_multiple_of(BLOCK) {
            self.bases.push(sample.time);
        }
        let row = self.row(place, sample);
        self.rows.push(row);
    }

    /// Drops so many of the first ones. Linear in what is left.
    pub fn drop_first(&mut self, count: usize) {
        if count > 0 {
            *self = self.range(count..self.len()).collect();
        }
    }

    /// Puts them in the order of time, those of the same time in the order in which they are. O(samples) where that is so
    /// already, and no memory; else O(samples × log samples).
    pub fn sort_by_time(&mut self) {
        if self.iter().is_sorted_by_key(|sample| sample.time) {
            return;
        }
        let mut samples: Vec<_> = self.iter().collect();
        samples.sort_by_key(|sample| sample.time);
        *self = samples.into_iter().collect();
    }

    /// Gives back the room that is kept for more.
    pub fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
        self.bases.shrink_to_fit();
        self.large.shrink_to_fit();
    }

    /// Gives every sample that has a stack the one that `map` has for it.
    pub fn remap_stacks(&mut self, map: impl Fn(StackId) -> Option<StackId>) {
        for row in &mut self.rows {
            row.stack = row.stack.and_then(&map);
        }
    }

    fn row(&mut self, place: usize, sample: Sample) -> Row {
        let Sample { time, cpu_delta, stack, weight, off_cpu } = sample;
        let since_base = time.checked_sub(self.bases[place / BLOCK]).map(u32::try_from);
        if let (Some(Ok(time)), Some(figures)) = (since_base, Figures::new(&sample)) {
            return Row { time, stack, figures };
        }
        // More than can be counted would be 150 gigabytes.
        let at = u32::try_from(self.large.len()).unwrap_or(u32::MAX);
        self.large.push(Large { time, cpu_delta, weight, off_cpu });
        Row { time: at, stack, figures: Figures::LARGE }
    }
}

/// A sample's weight, CPU delta and whether it is off the CPU: from the highest bit on, the latter, the weight, and the CPU delta.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Figures(u32);

impl Figures {
    /// Says that they are in [`Samples::large`].
    const LARGE: Self = Self(u32::MAX);

    const OFF_CPU: u32 = 1 << 31;

    /// The bits of the CPU delta. A sample on the CPU mostly stands for one interval, and for as much CPU time; one of
    /// waiting for many, and for hardly any.
    #[inline]
    fn delta_bits(off_cpu: bool) -> u32 {
        if off_cpu { 15 } else { 25 }
    }

    /// `None` if they are too great.
    fn new(sample: &Sample) -> Option<Self> {
        let bits = Self::delta_bits(sample.off_cpu);
        let weight = Some(sample.weight).filter(|weight| weight >> (31 - bits) == 0)?;
        let delta = u32::try_from(sample.cpu_delta).ok().filter(|delta| delta >> bits == 0)?;
        let off_cpu = if sample.off_cpu { Self::OFF_CPU } else { 0 };
        Some(Self(off_cpu | weight << bits | delta)).filter(|figures| *figures != Self::LARGE)
    }

    /// Whether they are those of an ordinary sample on the CPU.
    #[inline]
    fn is_on_cpu(self) -> bool {
        self.0 & Self::OFF_CPU == 0
    }

    /// The weight and the CPU delta.
    #[inline]
    fn split(self, off_cpu: bool) -> (u32, u32) {
        let bits = Self::delta_bits(off_cpu);
        ((self.0 & !Self::OFF_CPU) >> bits, self.0 & ((1 << bits) - 1))
    }
}

/// Goes through samples.
#[derive(Clone)]
pub struct Iter<'a> {
    samples: &'a Samples,
    /// The place of the first of `rows`.
    next: usize,
    rows: slice::Iter<'a, Row>,
}

impl Iterator for Iter<'_> {
    type Item = Sample;

    #[inline]
    fn next(&mut self) -> Option<Sample> {
        let (place, row) = (self.next, self.rows.next()?);
        self.next += 1;
        Some(self.samples.unpacked(place, *row))
    }

    fn nth(&mut self, n: usize) -> Option<Sample> {
        let row = self.rows.nth(n)?;
        self.next += n + 1;
        Some(self.samples.unpacked(self.next - 1, *row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Sample> {
        let row = self.rows.next_back()?;
        Some(self.samples.unpacked(self.next + self.rows.len(), *row))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl FusedIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Samples {
    type Item = Sample;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Sample> for Samples {
    fn extend<I: IntoIterator<Item = Sample>>(&mut self, samples: I) {
        let samples = samples.into_iter();
        let (more, _) = samples.size_hint();
        self.rows.reserve(more);
        self.bases.reserve(more / BLOCK);
        samples.for_each(|sample| self.push(sample));
    }
}

impl FromIterator<Sample> for Samples {
    fn from_iter<I: IntoIterator<Item = Sample>>(samples: I) -> Self {
        let mut all = Self::new();
        all.extend(samples);
        all
    }
}

impl PartialEq for Samples {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other)
    }
}

impl Eq for Samples {}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().fmt(f)
    }
}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: u64, cpu_delta: u64, weight: u32, off_cpu: bool) -> Sample {
        Sample { time, cpu_delta, stack: Some(StackId::from_index(time as usize % 7)), weight, off_cpu }
    }

    #[test]
    fn an_ordinary_sample_takes_twelve_bytes() {
        assert_eq!(size_of::<Row>(), 12);
        let samples: Samples = (0..1000).map(|at| sample(at * 4_000_000, 4_000_000, 1, false)).collect();
        assert!(samples.large.is_empty());
        assert_eq!(samples.bases.len(), 1000_usize.div_ceil(BLOCK));
    }

    #[test]
    fn what_comes_out_is_what_was_put_in() {
        let check = |figures: &[(u64, u64, u32, bool)], large: usize| {
            let samples: Vec<_> = figures.iter().map(|&(a, b, c, d)| sample(a, b, c, d)).collect();
            let table: Samples = samples.iter().copied().collect();
            assert_eq!(table.iter().collect::<Vec<_>>(), samples);
            assert_eq!(table.large.len(), large, "{figures:?}");
        };
        check(&[], 0);
        check(&[(5, 0, 0, false), (5 + u64::from(u32::MAX), (1 << 25) - 1, 63, false)], 0);
        check(&[(5, 0, 0, false), (6 + u64::from(u32::MAX), 0, 1, false), (4, 0, 1, false)], 2);
        check(&[(9, 1 << 25, 1, false), (9, 0, 64, false), (9, u64::MAX, u32::MAX, false)], 3);
        check(&[(9, (1 << 15) - 1, 1, true), (9, 0, (1 << 16) - 1, true)], 0);
        check(&[(9, 1 << 15, 1, true), (9, 0, 1 << 16, true), (9, u64::MAX, u32::MAX, true)], 3);
        // The greatest figures that would fit stand for those that do not.
        check(&[(9, (1 << 15) - 1, (1 << 16) - 1, true)], 1);
        check(&[(u64::MAX, 1, 1, false), (0, 1, 1, false)], 1);
    }

    #[test]
    fn samples_without_a_stack_stay_without() {
        let table: Samples = [Sample::new(1, None, 0), Sample::new(2, None, u64::MAX)].into_iter().collect();
        assert!(table.iter().all(|sample| sample.stack.is_none()));
    }

    #[test]
    fn places_are_those_of_a_list() {
        let samples: Vec<_> = (0..100).map(|at| sample(at * at * 1_000_000, at, 1, at % 3 == 0)).collect();
        let table: Samples = samples.iter().copied().collect();
        assert_eq!((table.first(), table.last()), (samples.first().copied(), samples.last().copied()));
        assert_eq!(table.get(100), None);
        assert_eq!(table.range(31..65).collect::<Vec<_>>(), samples[31..65]);
        assert_eq!(table.range(90..200).len(), 10);
        assert_eq!(table.range(Range { start: 5, end: 3 }).count(), 0);
        assert!(table.iter().rev().eq(samples.iter().copied().rev()));
        assert!(table.iter().skip(2).step_by(40).eq(samples.iter().copied().skip(2).step_by(40)));
    }

    #[test]
    fn samples_before_a_time_are_counted() {
        let samples = [3, 3, 5, 9_000_000_000, 9_000_000_000, u64::MAX].map(|time| sample(time, 0, 1, false));
        let table: Samples = samples.into_iter().collect();
        for time in [0, 3, 4, 5, 6, 9_000_000_000, 9_000_000_001, u64::MAX] {
            assert_eq!(table.count_before(time), samples.partition_point(|sample| sample.time < time));
        }
        assert_eq!(Samples::new().count_before(7), 0);
    }

    #[test]
    fn samples_are_put_in_order_and_equal_ones_stay() {
        let samples: Vec<_> =
            (0..200).map(|at| sample((at * 37) % 20 * 1_000_000_000, at, 1, false)).collect();
        let mut table: Samples = samples.iter().copied().collect();
        table.sort_by_time();
        let mut sorted = samples;
        sorted.sort_by_key(|sample| sample.time);
        assert_eq!(table.iter().collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn the_first_ones_are_dropped() {
        let samples: Vec<_> = (0..70).map(|at| sample(at * 1_000_000, 1_000_000, 1, false)).collect();
        let mut table: Samples = samples.iter().copied().collect();
        table.drop_first(33);
        assert_eq!(table.iter().collect::<Vec<_>>(), samples[33..]);
        table.drop_first(99);
        assert_eq!(table, Samples::new());
    }

    #[test]
    fn stacks_are_given_other_numbers() {
        let mut table: Samples = (0..9).map(|time| sample(time, u64::MAX * (time % 2), 1, false)).collect();
        table.remap_stacks(|stack| (stack.index() != 2).then(|| StackId::from_index(stack.index() + 40)));
        let stacks: Vec<_> = table.iter().map(|sample| sample.stack.map(StackId::index)).collect();
        let expected = [40, 41, 0, 43, 44, 45, 46, 40, 41].map(|at| (at > 0).then_some(at));
        assert_eq!(stacks, expected);
    }
}
