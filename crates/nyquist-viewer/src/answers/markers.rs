//! `markers`: the markers of the selected threads and time.

use nyquist_profile::{Marker, MarkerFormat, MarkerTiming, MarkerValue, Profile, StackId, ThreadIndex};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::parameters::name_search;

/// The maximum number of rows of a response.
const MAX_ROWS: usize = 5000;

#[derive(Debug, Serialize)]
pub(super) struct MarkersAnswer<'a> {
    count: usize,
    kinds: Vec<MarkerTotals<'a>>,
    /// Thread, start and duration in ns, name, the texts of the fields, and the number of the stack.
    rows: Vec<MarkerRow<'a>>,
}

type MarkerRow<'a> = (usize, u64, Option<u64>, &'a str, String, Option<usize>);

#[derive(Debug, Serialize)]
struct MarkerTotals<'a> {
    name: &'a str,
    count: u64,
    total_ns: u64,
    /// Whether one of them has a stack, so that they can be shown in place of samples.
    has_stacks: bool,
}

pub(super) fn answer<'a>(context: &QueryContext<'_, 'a>) -> Result<MarkersAnswer<'a>, ViewerError> {
    let limit = context.parameters.at_most("limit", 500, MAX_ROWS)?;
    let profile = context.view.profile();
    let found = matching_markers(context)?;
    let rows = found.iter().take(limit).map(|(start, duration, thread, marker)| {
        let stack = marker.stack.map(StackId::index);
        (thread.index(), *start, *duration, profile.string(marker.name), fields(profile, marker), stack)
    });
    let kinds = context.view.markers().into_iter();
    let kinds = kinds.map(|kind| MarkerTotals {
        name: kind.name,
        count: kind.count,
        has_stacks: context.recorded.has_marker(kind.name),
        total_ns: kind.durations.map_or(0, |durations| durations.total_ns),
    });
    Ok(MarkersAnswer { count: found.len(), rows: rows.collect(), kinds: kinds.take(MAX_ROWS).collect() })
}

/// A matching marker: its start, its duration, and its thread.
pub(super) type MarkerMatch<'a> = (u64, Option<u64>, ThreadIndex, &'a Marker);

/// The matching markers, by time.
pub(super) fn matching_markers<'a>(
    context: &QueryContext<'_, 'a>,
) -> Result<Vec<MarkerMatch<'a>>, ViewerError> {
    let search = context.parameters.get("search").map(name_search).transpose()?;
    let kind = context.parameters.get("kind");
    let (profile, times) = (context.view.profile(), context.view.times());
    let mut found: Vec<MarkerMatch<'a>> = Vec::new();
    for (thread, row) in context.view.selection().select_threads(profile) {
        for marker in &row.markers {
            let Some((start, duration)) = moments(marker.timing) else { continue };
            let is_in_range = start < times.end && start.saturating_add(duration.unwrap_or(0)) >= times.start;
            let name = profile.string(marker.name);
            let is_requested = kind.is_none_or(|kind| kind == name)
                && search.as_ref().is_none_or(|search| search.matches_any([name, &*fields(profile, marker)]));
            if is_in_range && is_requested {
                found.push((start, duration, thread, marker));
            }
        }
    }
    found.sort_by_key(|(start, _, thread, _)| (*start, *thread));
    Ok(found)
}

/// The start and the duration of a marker. A marker that only ends an interval is not
/// included.
fn moments(timing: MarkerTiming) -> Option<(u64, Option<u64>)> {
    match timing {
        MarkerTiming::Instant(time) | MarkerTiming::IntervalStart(time) => Some((time, None)),
        MarkerTiming::Interval(start, end) => Some((start, Some(end.saturating_sub(start)))),
        MarkerTiming::IntervalEnd(_) => None,
    }
}

/// The fields of a marker, as text.
pub(super) fn fields(profile: &Profile, marker: &Marker) -> String {
    let Some(schema) = marker.schema else { return String::new() };
    let fields = &profile.marker_schema(schema).fields;
    let shown = fields.iter().zip(&marker.values).filter_map(|(field, value)| {
        let value = match value {
            MarkerValue::Missing => return None,
            MarkerValue::String(text) => profile.string(*text).to_owned(),
            MarkerValue::Integer(number) => integer(*number, field.format),
            MarkerValue::Number(number) => decimal(*number, field.format),
        };
        let label = field.label.as_deref().unwrap_or(&field.key);
        Some(if fields.len() == 1 { value } else { format!("{label}: {value}") })
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn integer(number: i64, format: MarkerFormat) -> String {
    match format {
        MarkerFormat::Hexadecimal => format!("{number:#x}"),
        _ if is_duration(format) => format!("{number} ms"),
        _ => number.to_string(),
    }
}

fn decimal(number: f64, format: MarkerFormat) -> String {
    match format {
        MarkerFormat::Percentage => format!("{:.1}%", number * 100.0),
        _ if is_duration(format) => format!("{number:.3} ms"),
        _ => number.to_string(),
    }
}

/// Whether a field's values are durations, which are in ms in all formats.
fn is_duration(format: MarkerFormat) -> bool {
    use MarkerFormat::{Duration, Microseconds, Milliseconds, Nanoseconds, Seconds};
    matches!(format, Duration | Seconds | Milliseconds | Microseconds | Nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_shown_in_their_formats() {
        assert_eq!(integer(0x7fc0_b108_2990, MarkerFormat::Hexadecimal), "0x7fc0b1082990");
        assert_eq!(integer(7, MarkerFormat::Integer), "7");
        assert_eq!(decimal(20.123_456, MarkerFormat::Duration), "20.123 ms");
        assert_eq!(decimal(0.25, MarkerFormat::Percentage), "25.0%");
        assert_eq!(decimal(0.25, MarkerFormat::Decimal), "0.25");
    }
}
