//! Places a thread's samples on lanes of time, on which no two of them overlap.

use std::collections::BTreeSet;

use nyquist_profile::{Meta, Sample, Samples};

/// A sample with the time that it is drawn in.
pub(super) struct PlacedSample {
    pub sample: Sample,
    pub start: u64,
    /// `start` and the sample's whole weight.
    pub end: u64,
}

/// A lane of time. Its samples are in order.
pub(super) type Lane = Vec<PlacedSample>;

/// Places all samples with a weight. Each keeps its whole weight. Unless times are exact, a sample that comes
/// early or late by half an interval follows the previous one immediately. A sample that overlaps the
/// previous one is moved to its end. If it would be moved by more than the weight of a sample, it is placed
/// on another lane, because the thread ran on several CPUs. O(samples × log lanes).
pub(super) fn place(samples: &Samples, meta: &Meta) -> Vec<Lane> {
    let interval = meta.interval;
    let noise = if meta.has_exact_times { 0 } else { interval / 2 };
    let mut weighty: Vec<Sample> = samples.iter().filter(|sample| sample.weight > 0).collect();
    weighty.sort_by_key(|sample| sample.start(interval));
    let largest = weighty.iter().filter(|sample| !sample.off_cpu).map(|sample| sample.weight).max();
    let limit = largest.unwrap_or(0).saturating_add(1).saturating_mul(interval);
    let mut lanes: Vec<Lane> = Vec::new();
    let mut ends: BTreeSet<(u64, usize)> = BTreeSet::new();
    for sample in weighty {
        let begin = sample.start(interval);
        let latest = (begin.saturating_add(limit), usize::MAX);
        let found = ends.range(..=latest).next_back().copied();
        let (lane, start) = match found {
            Some((end, lane)) if begin <= end.saturating_add(noise) => (lane, end),
            Some((_, lane)) => (lane, begin),
            None => (lanes.len(), begin),
        };
        found.map(|key| ends.remove(&key));
        let end = start.saturating_add(sample.weight.saturating_mul(interval));
        ends.insert((end, lane));
        let placed = PlacedSample { sample, start, end };
        match lanes.get_mut(lane) {
            Some(lane) => lane.push(placed),
            None => lanes.push(vec![placed]),
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The starts and ends on each lane, given the starts and weights of samples, at an interval of 10.
    fn placed_as(samples: &[(u64, u64)], has_exact_times: bool) -> Vec<Vec<(u64, u64)>> {
        let mut all = Samples::default();
        for &(start, weight) in samples {
            let time = start + weight * 10;
            all.push(Sample { weight, ..Sample::new(time, None, 0) });
        }
        let meta = Meta { interval: 10, has_exact_times, ..Meta::default() };
        let times = |lane: &Lane| lane.iter().map(|placed| (placed.start, placed.end)).collect();
        place(&all, &meta).iter().map(times).collect()
    }

    fn placed(samples: &[(u64, u64)]) -> Vec<Vec<(u64, u64)>> {
        placed_as(samples, false)
    }

    #[test]
    fn exact_times_stay() {
        assert_eq!(placed_as(&[(0, 1), (14, 1)], true), [[(0, 10), (14, 24)]]);
    }

    #[test]
    fn samples_keep_their_weight() {
        assert_eq!(placed(&[(0, 1), (9, 1), (24, 1), (50, 0)]), [[(0, 10), (10, 20), (20, 30)]]);
        assert_eq!(placed(&[(0, 1), (40, 4), (50, 1)]), [[(0, 10), (40, 80), (80, 90)]]);
    }

    #[test]
    fn several_cpus_are_several_lanes() {
        let lanes = placed(&[(0, 1), (0, 1), (0, 1), (0, 1), (30, 1)]);
        assert_eq!(lanes, [vec![(0, 10), (10, 20), (20, 30), (30, 40)], vec![(0, 10)]][..].to_vec());
    }
}
