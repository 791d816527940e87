//! `counters`: values over time that were counted beside the samples, such as memory in use.

use nyquist_profile::{Counter, CounterGraph};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use std::ops::Range;

/// The most parts of a graph.
const MAX_PARTS: usize = 4096;

/// The most counters of one answer.
const MAX_COUNTERS: usize = 100;

#[derive(Debug, Serialize)]
pub(super) struct CountersAnswer<'a> {
    start_ns: u64,
    end_ns: u64,
    part_ns: f64,
    #[serde(rename = "counters")]
    rows: Vec<CounterRow<'a>>,
}

#[derive(Debug, Serialize)]
struct CounterRow<'a> {
    counter: usize,
    process: usize,
    label: &'a str,
    description: &'a str,
    unit: &'a str,
    /// Whether the values are levels at a time, and not amounts added in it.
    is_level: bool,
    color: &'static str,
    values: Vec<f64>,
}

/// The counters of all processes, in drawing order. O(values).
pub(super) fn answer<'a>(context: &QueryContext<'_, 'a>) -> Result<CountersAnswer<'a>, ViewerError> {
    let parts = context.parameters.at_most("parts", 500, MAX_PARTS)?.max(1);
    let (profile, times) = (context.view.profile(), context.view.times());
    let mut counters: Vec<_> = profile.counters().iter().enumerate().collect();
    counters.retain(|(_, counter)| !counter.samples.is_empty());
    counters.sort_by_key(|(index, counter)| (counter.process, counter.display.sort_weight, *index));
    let rows = counters.into_iter().take(MAX_COUNTERS).map(|(index, counter)| {
        let is_level = counter.display.graph == CounterGraph::Accumulated;
        let values = if is_level { levels(counter, &times, parts) } else { sums(counter, &times, parts) };
        let label = if counter.display.label.is_empty() { &counter.name } else { &counter.display.label };
        CounterRow {
            counter: index,
            process: counter.process.index(),
            label,
            description: &counter.description,
            unit: &counter.display.unit,
            is_level,
            color: counter.display.color.as_str(),
            values,
        }
    });
    let part_ns = (times.end - times.start) as f64 / parts as f64;
    Ok(CountersAnswer { start_ns: times.start, end_ns: times.end, part_ns, rows: rows.collect() })
}

/// The index of the part that contains a time, if there is one.
fn part_of(time: u64, times: &Range<u64>, parts: usize) -> Option<usize> {
    let offset = u128::from(times.contains(&time).then(|| time - times.start)?);
    Some((offset * parts as u128 / u128::from(times.end - times.start)) as usize)
}

/// The amount added in each part. A value is spread evenly over the time since the previous one, because
/// counters are read at intervals, and parts may be shorter than these. The amount of the first value is
/// not known. O(values + parts), because the filled ranges follow each other, whatever the order in the
/// file.
fn sums(counter: &Counter, times: &Range<u64>, parts: usize) -> Vec<f64> {
    let mut sums = vec![0.0; parts];
    let part_ns = (times.end - times.start) as f64 / parts as f64;
    let place = |time: u64| (time as f64 - times.start as f64) / part_ns;
    let mut samples = counter.samples.iter();
    let mut latest = samples.next().map_or(0, |first| first.time);
    for sample in samples.filter(|sample| sample.delta.is_finite()) {
        if sample.time > latest {
            spread(&mut sums, place(latest)..place(sample.time), sample.delta);
            latest = sample.time;
        } else if let Some(part) = part_of(sample.time, times, parts) {
            sums[part] += sample.delta;
        }
    }
    sums
}

/// Spreads an amount evenly over the parts that a range covers. The range may start or end outside of them.
fn spread(sums: &mut [f64], range: Range<f64>, amount: f64) {
    let count = sums.len() as f64;
    let (start, end) = (range.start.clamp(0.0, count), range.end.clamp(0.0, count));
    let (first, last) = (start as usize, end.ceil() as usize);
    for (part, sum) in sums.iter_mut().enumerate().take(last).skip(first) {
        let covered = end.min(part as f64 + 1.0) - start.max(part as f64);
        *sum += amount * covered / (range.end - range.start);
    }
}

/// The highest level of each part; a part without a value has that of the previous part.
fn levels(counter: &Counter, times: &Range<u64>, parts: usize) -> Vec<f64> {
    let mut highest: Vec<Option<f64>> = vec![None; parts];
    let (mut level, mut before) = (0.0, 0.0);
    let mut last = vec![None; parts];
    for sample in counter.samples.iter().filter(|sample| sample.delta.is_finite()) {
        level += sample.delta;
        if let Some(part) = part_of(sample.time, times, parts) {
            highest[part] = Some(highest[part].map_or(level, |known: f64| known.max(level)));
            last[part] = Some(level);
        } else if sample.time < times.start {
            before = level;
        }
    }
    let fill = |(highest, last): (Option<f64>, Option<f64>)| {
        let shown = highest.unwrap_or(before);
        before = last.unwrap_or(before);
        shown
    };
    highest.into_iter().zip(last).map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn an_amount_is_spread_over_what_it_covers() {
        // In hundredths.
        let spread_over = |range| {
            let mut sums = [0.0; 4];
            spread(&mut sums, range, 8.0);
            sums.map(|sum| (sum * 100.0).round() as i64)
        };
        assert_eq!(spread_over(0.0..4.0), [200; 4]);
        assert_eq!(spread_over(1.5..3.5), [0, 200, 400, 200]);
        // A part of the range is before the first part, or after the last one.
        assert_eq!(spread_over(-2.0..2.0), [200, 200, 0, 0]);
        assert_eq!(spread_over(3.0..11.0), [0, 0, 0, 100]);
        assert_eq!(spread_over(9.0..10.0), [0; 4]);
    }
}
