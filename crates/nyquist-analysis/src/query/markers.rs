//! Markers by kind, with their number and their durations.

use std::ops::Range;

use crate::view::View;
use nyquist_profile::{CategoryId, Marker, MarkerSchemaId, MarkerTiming, StringId};
use rustc_hash::FxHashMap;

/// The markers of one name and schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerKind<'a> {
    /// Their name.
    pub name: &'a str,
    /// The name of their schema.
    pub schema: Option<&'a str>,
    /// The category of the first of them.
    pub category: &'a str,
    /// The number of markers. The begin and the end of an interval are one.
    pub count: u64,
    /// The durations of those that are intervals; `None` if none is.
    pub durations: Option<Durations>,
}

/// The distribution of durations, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// The number of intervals whose begin and end are known.
    pub count: u64,
    /// The sum.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// 50 % of them took no longer.
    pub p50_ns: u64,
    /// 90 % of them took no longer.
    pub p90_ns: u64,
    /// 99 % of them took no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// The key of a kind of markers.
type KindKey = (StringId, Option<MarkerSchemaId>);

#[derive(Default)]
struct MarkerGroup {
    category: Option<CategoryId>,
    count: u64,
    durations: Vec<u64>,
}

impl<'a> View<'a> {
    /// The markers of the selected threads that are at least partly in the selected times. The kind with the
    /// longest total duration is first. Filters by function do not apply. O(markers × log markers).
    pub fn markers(&self) -> Vec<MarkerKind<'a>> {
        let times = self.selection.times();
        let mut kinds: FxHashMap<KindKey, MarkerGroup> = FxHashMap::default();
        for &thread in &self.chosen.threads {
            collect(&self.profile().thread(thread).markers, &times, &mut kinds);
        }
        let mut rows: Vec<_> = kinds.into_iter().map(|(kind, found)| self.marker_kind(kind, found)).collect();
        rows.sort_by(|a, b| {
            let total = |row: &MarkerKind<'_>| row.durations.map_or(0, |durations| durations.total_ns);
            let by_size = (total(b), b.count).cmp(&(total(a), a.count));
            by_size.then_with(|| (a.name, a.schema).cmp(&(b.name, b.schema)))
        });
        rows
    }

    fn marker_kind(&self, (name, schema): KindKey, found: MarkerGroup) -> MarkerKind<'a> {
        let profile = self.profile();
        MarkerKind {
            name: profile.string(name),
            schema: schema.map(|schema| profile.marker_schema(schema).name.as_str()),
            category: found.category.map_or("", |category| profile.category(category).name.as_str()),
            count: found.count,
            durations: durations(found.durations),
        }
    }
}

/// Collects the markers of a thread. A marker that ends an interval belongs to the last open begin of its
/// kind.
fn collect(markers: &[Marker], times: &Range<u64>, kinds: &mut FxHashMap<KindKey, MarkerGroup>) {
    let overlaps = |start: u64, end: u64| {
        start < times.end && (end > times.start || start == end && start >= times.start)
    };
    let mut open: FxHashMap<KindKey, Vec<u64>> = FxHashMap::default();
    for marker in markers {
        let key = (marker.name, marker.schema);
        let (start, end) = match marker.timing {
            MarkerTiming::Instant(time) => (Some(time), None),
            MarkerTiming::Interval(start, end) => (Some(start), Some(end)),
            MarkerTiming::IntervalStart(start) => {
                open.entry(key).or_default().push(start);
                continue;
            }
            MarkerTiming::IntervalEnd(end) => (open.get_mut(&key).and_then(Vec::pop), Some(end)),
        };
        let (from, to) = (start.or(end).unwrap_or(0), end.or(start).unwrap_or(0));
        if overlaps(from, to) {
            let kind = kinds.entry(key).or_default();
            kind.category.get_or_insert(marker.category);
            kind.count += 1;
            kind.durations.extend(start.zip(end).map(|(start, end)| end.saturating_sub(start)));
        }
    }
    // An interval without an end lasts until the end of the recording.
    for (key, starts) in open {
        let count = starts.iter().filter(|&&start| start < times.end).count() as u64;
        if count > 0 {
            kinds.entry(key).or_default().count += count;
        }
    }
}

/// The statistics of some durations; `None` if there are none. O(durations × log durations).
pub(crate) fn durations(mut durations: Vec<u64>) -> Option<Durations> {
    durations.sort_unstable();
    // The nearest rank: the least duration that is not exceeded by at least that share of them.
    let percentile = |percent: usize| {
        let rank = (durations.len() * percent).div_ceil(100).max(1);
        durations.get(rank - 1).copied()
    };
    Some(Durations {
        count: durations.len() as u64,
        total_ns: durations.iter().fold(0, |sum, &duration| sum.saturating_add(duration)),
        min_ns: *durations.first()?,
        p50_ns: percentile(50)?,
        p90_ns: percentile(90)?,
        p99_ns: percentile(99)?,
        max_ns: *durations.last()?,
    })
}

#[cfg(test)]
mod tests {
    use nyquist_profile::ThreadIndex;

    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    fn check(
        range: Option<Range<u64>>,
        timings: &[(&str, MarkerTiming)],
        expected: &[(&str, u64, Option<[u64; 6]>)],
    ) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(name, timing) in timings {
            let name = test.builder.intern_string(name);
            let category = CategoryId::from_index(0);
            let marker = Marker { name, timing, category, schema: None, values: Vec::new(), stack: None };
            test.builder.add_marker(ThreadIndex::from_index(0), marker);
        }
        with_view(&test.finish(), &Selection { range, ..Selection::default() }, |view| {
            let kinds = view.markers().into_iter().map(|kind| {
                let durations = kind.durations.map(|durations| {
                    let Durations { total_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, .. } = durations;
                    [total_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns]
                });
                (kind.name, kind.count, durations)
            });
            assert_eq!(kinds.collect::<Vec<_>>(), expected);
        });
    }

    #[test]
    fn durations_have_percentiles() {
        use MarkerTiming::{Instant, Interval};
        let gc: Vec<_> = (1..=100).map(|length| ("gc", Interval(1000, 1000 + length))).collect();
        check(None, &gc, &[("gc", 100, Some([5050, 1, 50, 90, 99, 100]))]);
        let few = [("a", Instant(5)), ("b", Interval(0, 7)), ("a", Instant(6)), ("b", Interval(1, 2))];
        check(None, &few, &[("b", 2, Some([8, 1, 1, 7, 7, 7])), ("a", 2, None)]);
    }

    #[test]
    fn a_begin_and_an_end_are_one_marker() {
        use MarkerTiming::{IntervalEnd, IntervalStart};
        let nested = [
            ("a", IntervalStart(0)),
            ("a", IntervalStart(10)),
            ("a", IntervalEnd(15)),
            ("a", IntervalEnd(40)),
        ];
        check(None, &nested, &[("a", 2, Some([45, 5, 5, 40, 40, 40]))]);
        // A begin or an end without the other counts, but its duration is not known.
        check(None, &nested[2..3], &[("a", 1, None)]);
        check(None, &nested[..1], &[("a", 1, None)]);
    }

    #[test]
    fn a_range_has_what_is_in_it_at_least_in_part() {
        use MarkerTiming::{Instant, Interval};
        let markers = [
            ("in", Interval(5, 15)),
            ("out", Interval(20, 30)),
            ("out", Interval(0, 10)),
            ("at", Instant(10)),
        ];
        check(Some(10..20), &markers, &[("in", 1, Some([10; 6])), ("at", 1, None)]);
    }
}
