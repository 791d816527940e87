//! The samples of a thread in compact form: eight and a half bytes each if their figures are all the same.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;
use std::slice;

use crate::id::StackId;
use crate::sample::{Sample, UntimedSample};

/// The number of samples in a block, which share a base of their times. If their figures are the same,
/// these are stored once.
const BLOCK: usize = 32;

/// A thread's samples in sequence. They are added and returned, without loss, as a [`Sample`] of 32 bytes.
/// Here a sample takes 8.5 bytes if it has the weight and the CPU delta of its neighbours, and otherwise
/// 12.5. A sample with unusual figures (far from its neighbours in time, or with a great weight or CPU
/// delta) takes 44.
#[derive(Clone, Default)]
pub struct Samples {
    rows: Vec<StoredSample>,
    /// The common data of each [`BLOCK`] of rows.
    blocks: Vec<SampleBlock>,
    /// The figures of each row of those blocks whose rows differ, [`BLOCK`] per block.
    figures: Vec<SampleFigures>,
    /// The figures of samples that do not fit.
    large: Vec<LargeFigures>,
}

/// A sample.
#[derive(Clone, Copy)]
struct StoredSample {
    /// Since the base of its block, in ns; with [`SampleFigures::LARGE`], the index in [`Samples::large`].
    time: u32,
    stack: Option<StackId>,
}

/// The common data of consecutive samples.
#[derive(Clone, Copy)]
struct SampleBlock {
    /// The base of their times.
    base: u64,
    figures: BlockFigures,
}

/// The figures of a block of samples.
#[derive(Clone, Copy)]
enum BlockFigures {
    /// All rows have these.
    Same(SampleFigures),
    /// Each row has its own, in the part of [`Samples::figures`] with this index.
    Each(u32),
}

/// Figures that do not fit in the other columns.
#[derive(Clone, Copy)]
struct LargeFigures {
    time: u64,
    cpu_delta: u64,
    weight: u64,
    off_cpu: bool,
}

impl Samples {
    /// No samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// No samples, with memory for this many ordinary ones.
    pub fn with_capacity(capacity: usize) -> Self {
        let (rows, blocks) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity.div_ceil(BLOCK)));
        Self { rows, blocks, ..Self::default() }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The sample at an index. O(1).
    #[inline]
    pub fn get(&self, place: usize) -> Option<Sample> {
        Some(self.unpacked(place, *self.rows.get(place)?))
    }

    /// The sample of the row at an index.
    #[inline]
    fn unpacked(&self, place: usize, row: StoredSample) -> Sample {
        let SampleBlock { base, figures } = self.blocks[place / BLOCK];
        let figures = match figures {
            BlockFigures::Same(figures) => figures,
            BlockFigures::Each(part) => self.figures[part as usize * BLOCK + place % BLOCK],
        };
        let StoredSample { time, stack } = row;
        if figures == SampleFigures::LARGE {
            let LargeFigures { time, cpu_delta, weight, off_cpu } = self.large[time as usize];
            return Sample { time, cpu_delta, stack, weight, off_cpu };
        }
        let off_cpu = !figures.is_on_cpu();
        let (weight, cpu_delta) = figures.split();
        Sample {
            time: base + u64::from(time),
            cpu_delta: cpu_delta.into(),
            stack,
            weight: weight.into(),
            off_cpu,
        }
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

    /// The samples in a range of indexes, as far as they exist.
    pub fn range(&self, places: Range<usize>) -> Iter<'_> {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        Iter { samples: self, next: start, rows: self.rows[start..end].iter() }
    }

    /// Goes through the samples in a range of indexes, as far as they exist, without their times. That takes less time
    /// than [`Samples::range`].
    #[inline]
    pub fn each_untimed(&self, places: Range<usize>, mut take: impl FnMut(UntimedSample)) {
        let end = places.end.min(self.len());
        let mut start = places.start;
        while start < end {
            let block = start / BLOCK;
            let block_end = end.min((block + 1) * BLOCK);
            let rows = &self.rows[start..block_end];
            match self.blocks[block].figures {
                BlockFigures::Same(figures) if figures != SampleFigures::LARGE => {
                    let sample = figures.untimed();
                    for row in rows {
                        take(UntimedSample { stack: row.stack, ..sample });
                    }
                }
                BlockFigures::Same(_) => {
                    for row in rows {
                        take(self.large_row(*row));
                    }
                }
                BlockFigures::Each(part) => {
                    let figures = part as usize * BLOCK + start % BLOCK;
                    for (row, &figures) in rows.iter().zip(&self.figures[figures..]) {
                        if figures == SampleFigures::LARGE {
                            take(self.large_row(*row));
                        } else {
                            take(UntimedSample { stack: row.stack, ..figures.untimed() });
                        }
                    }
                }
            }
            start = block_end;
        }
    }

    /// A row whose figures are in [`Samples::large`].
    fn large_row(&self, row: StoredSample) -> UntimedSample {
        let LargeFigures { cpu_delta, weight, off_cpu, .. } = self.large[row.time as usize];
        UntimedSample { cpu_delta, stack: row.stack, weight, off_cpu }
    }

    /// The number of samples before `time`, if they are in the order of time. O(log samples).
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
        match self.blocks.last().copied().filter(|_| !self.len().is_multiple_of(BLOCK)) {
            Some(block) => {
                let (time, figures) = self.packed(block.base, &sample);
                self.add_figures(block.figures, figures);
                self.rows.push(StoredSample { time, stack: sample.stack });
            }
            None => {
                let (time, figures) = self.packed(sample.time, &sample);
                self.blocks.push(SampleBlock { base: sample.time, figures: BlockFigures::Same(figures) });
                self.rows.push(StoredSample { time, stack: sample.stack });
            }
        }
    }

    /// Adds the figures of another row of the last block, whose figures so far are `known`.
    #[inline]
    fn add_figures(&mut self, known: BlockFigures, new: SampleFigures) {
        match known {
            BlockFigures::Same(same) if same == new => {}
            BlockFigures::Same(same) => self.part_figures(same, new),
            BlockFigures::Each(_) => self.figures.push(new),
        }
    }

    /// Splits the figures of the last block, whose rows were all the same, because a row differs.
    fn part_figures(&mut self, same: SampleFigures, new: SampleFigures) {
        // A larger number would need 500 gigabytes.
        let part = u32::try_from(self.figures.len() / BLOCK).unwrap_or(u32::MAX);
        self.figures.extend(std::iter::repeat_n(same, self.rows.len() % BLOCK));
        self.figures.push(new);
        if let Some(block) = self.blocks.last_mut() {
            block.figures = BlockFigures::Each(part);
        }
    }

    /// Replaces each sample by what `map` returns. Mostly in place; with unusual figures, there are two tables until
    /// it is done.
    pub fn map_each(&mut self, map: impl Fn(Sample) -> Sample) {
        let mut done = 0;
        if self.large.is_empty() {
            while done < self.len() && self.map_block(done, &map) {
                done += BLOCK;
            }
        }
        if done < self.len() {
            *self = self.range(0..done).chain(self.range(done..self.len()).map(&map)).collect();
        }
    }

    /// Replaces the samples of the block that begins at an index. Returns false, and leaves them as they are, if the
    /// block would need more memory.
    fn map_block(&mut self, start: usize, map: &impl Fn(Sample) -> Sample) -> bool {
        let end = self.len().min(start + BLOCK);
        let mapped: Vec<Sample> = self.range(start..end).map(map).collect();
        let base = mapped[0].time;
        let packed: Option<Vec<_>> = mapped
            .iter()
            .map(|sample| {
                let since_base = u32::try_from(sample.time.checked_sub(base)?).ok()?;
                Some((since_base, SampleFigures::new(sample)?))
            })
            .collect();
        let Some(packed) = packed else { return false };
        let block = &mut self.blocks[start / BLOCK];
        match &mut block.figures {
            BlockFigures::Same(same) if packed.iter().all(|row| row.1 == packed[0].1) => *same = packed[0].1,
            BlockFigures::Same(_) => return false,
            BlockFigures::Each(part) => {
                let first = *part as usize * BLOCK;
                for (place, row) in packed.iter().enumerate() {
                    self.figures[first + place] = row.1;
                }
            }
        }
        block.base = base;
        for (row, (sample, (time, _))) in self.rows[start..end].iter_mut().zip(mapped.iter().zip(&packed)) {
            *row = StoredSample { time: *time, stack: sample.stack };
        }
        true
    }

    /// Removes this many of the first samples. Linear in the number of remaining ones.
    pub fn drop_first(&mut self, count: usize) {
        if count > 0 {
            *self = self.range(count..self.len()).collect();
        }
    }

    /// Sorts by time; the order of samples with the same time stays. If they are already sorted, O(samples)
    /// and no memory, otherwise O(samples × log samples).
    pub fn sort_by_time(&mut self) {
        if self.iter().is_sorted_by_key(|sample| sample.time) {
            return;
        }
        let mut samples: Vec<_> = self.iter().collect();
        samples.sort_by_key(|sample| sample.time);
        *self = samples.into_iter().collect();
    }

    /// Frees memory reserved for more samples.
    pub fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
        self.blocks.shrink_to_fit();
        self.figures.shrink_to_fit();
        self.large.shrink_to_fit();
    }

    /// Replaces the stack of every sample that has one by the stack that `map` returns.
    pub fn remap_stacks(&mut self, map: impl Fn(StackId) -> Option<StackId>) {
        for row in &mut self.rows {
            row.stack = row.stack.and_then(&map);
        }
    }

    /// The time and the figures of a row in a block with that base.
    #[inline]
    fn packed(&mut self, base: u64, sample: &Sample) -> (u32, SampleFigures) {
        let since_base = sample.time.checked_sub(base).map(u32::try_from);
        match (since_base, SampleFigures::new(sample)) {
            (Some(Ok(time)), Some(figures)) => (time, figures),
            _ => self.put_large(sample),
        }
    }

    fn put_large(&mut self, sample: &Sample) -> (u32, SampleFigures) {
        let Sample { time, cpu_delta, weight, off_cpu, .. } = *sample;
        // A larger number would need 150 gigabytes.
        let at = u32::try_from(self.large.len()).unwrap_or(u32::MAX);
        self.large.push(LargeFigures { time, cpu_delta, weight, off_cpu });
        (at, SampleFigures::LARGE)
    }
}

/// A sample's weight, CPU delta and whether it is off the CPU. From the highest bit on: off-CPU, without a CPU
/// delta, the weight, and the CPU delta if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SampleFigures(u32);

impl SampleFigures {
    /// Marks figures that are in [`Samples::large`].
    const LARGE: Self = Self(u32::MAX);

    const OFF_CPU: u32 = 1 << 31;
    const NO_DELTA: u32 = 1 << 30;

    /// The number of bits of weight and CPU delta together.
    const BITS: u32 = 30;

    /// The number of bits of the CPU delta. An on-CPU sample usually stands for one interval and about as
    /// much CPU time; an off-CPU sample stands for many intervals and little CPU time. Those of other profilers
    /// have none, and large weights.
    #[inline]
    fn delta_bits(off_cpu: bool, has_delta: bool) -> u32 {
        match (has_delta, off_cpu) {
            (false, _) => 0,
            (true, true) => 15,
            (true, false) => 25,
        }
    }

    /// `None` if the figures are too great.
    fn new(sample: &Sample) -> Option<Self> {
        let has_delta = sample.cpu_delta > 0;
        let bits = Self::delta_bits(sample.off_cpu, has_delta);
        let weight = u32::try_from(sample.weight).ok().filter(|weight| weight >> (Self::BITS - bits) == 0)?;
        let delta = u32::try_from(sample.cpu_delta).ok().filter(|delta| delta >> bits == 0)?;
        let off_cpu = if sample.off_cpu { Self::OFF_CPU } else { 0 };
        let no_delta = if has_delta { 0 } else { Self::NO_DELTA };
        Some(Self(off_cpu | no_delta | weight << bits | delta)).filter(|figures| *figures != Self::LARGE)
    }

    /// Whether they belong to an ordinary on-CPU sample.
    #[inline]
    fn is_on_cpu(self) -> bool {
        self.0 & Self::OFF_CPU == 0
    }

    /// A sample with these figures, which are not [`SampleFigures::LARGE`], and no stack.
    #[inline]
    fn untimed(self) -> UntimedSample {
        let (weight, cpu_delta) = self.split();
        let (weight, cpu_delta) = (weight.into(), cpu_delta.into());
        UntimedSample { cpu_delta, stack: None, weight, off_cpu: !self.is_on_cpu() }
    }

    /// The weight and the CPU delta.
    #[inline]
    fn split(self) -> (u32, u32) {
        let bits = Self::delta_bits(!self.is_on_cpu(), self.0 & Self::NO_DELTA == 0);
        let figures = self.0 & ((1 << Self::BITS) - 1);
        (figures >> bits, figures & ((1 << bits) - 1))
    }
}

/// Goes through samples.
#[derive(Clone)]
pub struct Iter<'a> {
    samples: &'a Samples,
    /// The index of the first of `rows`.
    next: usize,
    rows: slice::Iter<'a, StoredSample>,
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
        self.blocks.reserve(more / BLOCK);
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

    fn sample(time: u64, cpu_delta: u64, weight: u64, off_cpu: bool) -> Sample {
        Sample { time, cpu_delta, stack: Some(StackId::from_index(time as usize % 7)), weight, off_cpu }
    }

    #[test]
    fn samples_of_equal_figures_take_8_5_bytes() {
        let table = |cpu_delta: fn(u64) -> u64| -> Samples {
            (0..1000).map(|at| sample(at * 4_000_000, cpu_delta(at), 1, false)).collect()
        };
        let bytes = |samples: &Samples| {
            assert!(samples.large.is_empty());
            let rows = samples.rows.len() * size_of::<StoredSample>()
                + samples.blocks.len() * size_of::<SampleBlock>();
            rows + samples.figures.len() * size_of::<SampleFigures>()
        };
        assert_eq!(bytes(&table(|_| 4_000_000)), 1000 * 8 + 32 * 16);
        // A block with different figures stores all of them, up to the end of the samples.
        assert_eq!(bytes(&table(|at| 4_000_000 + at / 999)), 1000 * 8 + 32 * 16 + 8 * 4);
        assert_eq!(bytes(&table(|at| 4_000_000 + u64::from(at == 500))), 1000 * 8 + 32 * 16 + 32 * 4);
        assert_eq!(bytes(&table(|at| at)), 1000 * 12 + 32 * 16);
    }

    #[test]
    fn blocks_of_equal_and_other_figures_alternate() {
        let check = |delta: fn(u64) -> u64| {
            let samples: Vec<_> = (0..300).map(|at| sample(at * 1_000_000, delta(at), 1, false)).collect();
            let table: Samples = samples.iter().copied().collect();
            assert_eq!(table.iter().collect::<Vec<_>>(), samples);
            let at = |place| table.get(place).unwrap();
            assert!((0..300).rev().all(|place| at(place) == samples[place]));
            for range in [0..300, 31..33, 40..41, 64..290, 299..400, 300..301, 7..7] {
                let mut untimed = Vec::new();
                table.each_untimed(range.clone(), |sample| untimed.push(sample));
                let expected: Vec<_> = table.range(range).map(|sample| sample.untimed()).collect();
                assert_eq!(untimed, expected);
            }
        };
        check(|at| at / 32);
        check(|at| at / 33);
        check(|at| at / 64 % 2 * at);
        check(|at| u64::from(at % 32 == 31));
        check(|at| u64::from(at == 32) << 40);
        check(|at| u64::from(at / 32 == 3) << 40);
    }

    #[test]
    fn what_comes_out_is_what_was_put_in() {
        let check = |figures: &[(u64, u64, u64, bool)], large: usize| {
            let samples: Vec<_> = figures.iter().map(|&(a, b, c, d)| sample(a, b, c, d)).collect();
            let table: Samples = samples.iter().copied().collect();
            assert_eq!(table.iter().collect::<Vec<_>>(), samples);
            assert_eq!(table.large.len(), large, "{figures:?}");
        };
        check(&[], 0);
        check(&[(5, 0, 0, false), (5 + u64::from(u32::MAX), (1 << 25) - 1, 31, false)], 0);
        check(&[(5, 0, 0, false), (6 + u64::from(u32::MAX), 0, 1, false), (4, 0, 1, false)], 2);
        check(&[(9, 1 << 25, 1, false), (9, 1, 32, false), (9, u64::MAX, u64::MAX, false)], 3);
        check(&[(9, (1 << 15) - 1, 1, true), (9, 1, (1 << 15) - 1, true)], 0);
        check(&[(9, 1 << 15, 1, true), (9, 1, 1 << 15, true), (9, u64::MAX, u64::MAX, true)], 3);
        // Without a CPU delta, weights have its bits, too.
        check(&[(9, 0, (1 << 30) - 1, false), (9, 0, (1 << 30) - 2, true)], 0);
        check(&[(9, 0, 1 << 30, false), (9, 0, 1 << 30, true)], 2);
        // The greatest figures that would fit are the mark of those that do not.
        check(&[(9, 0, (1 << 30) - 1, true)], 1);
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
    fn each_sample_is_replaced() {
        type Figures = fn(u64) -> (u64, u64);
        let check = |figures: Figures, map: fn(Sample) -> Sample, large: usize| {
            let samples: Vec<_> = (0..100)
                .map(|at| sample(at * 1_000_000, figures(at).0, figures(at).1, at % 40 == 7))
                .collect();
            let mut table: Samples = samples.iter().copied().collect();
            table.map_each(map);
            let mapped: Vec<_> = samples.into_iter().map(map).collect();
            assert_eq!(table.iter().collect::<Vec<_>>(), mapped);
            assert_eq!(table.large.len(), large);
            // What is added later is behind them.
            table.push(sample(1, 2, 3, true));
            assert_eq!(table.last(), Some(sample(1, 2, 3, true)));
        };
        let earlier = |it: Sample| Sample { time: it.time / 2, weight: it.weight / 10, ..it };
        check(|at| (0, at * 1000), earlier, 0);
        check(|_| (0, 1000), earlier, 0);
        // Large ones become ordinary ones, and the other way round.
        check(|at| (0, at << 28), |it| Sample { weight: it.weight >> 28, ..it }, 0);
        check(|at| (0, at), |it| Sample { weight: it.weight << 25, ..it }, 68);
        // A block of the same figures becomes one of different ones.
        check(|at| (at / 90 * at, 1), |it| Sample { weight: it.time / 1_000_000 % 31, ..it }, 0);
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
