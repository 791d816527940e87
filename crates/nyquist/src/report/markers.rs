//! Markers by kind, with their counts and durations.

use super::context::{Report, TABLE_ROWS, more};
use crate::number::grouped;
use crate::text::{Cell, Column, Style, Table, Text};
use nyquist_analysis::MarkerKind;
use nyquist_analysis::schema::{List, MarkerRow, Rows};

pub(super) fn text(report: &Report<'_>) -> Text {
    let kinds = report.view.markers();
    if kinds.is_empty() {
        return "There are no markers.\n".into();
    }
    let limit = report.limit(TABLE_ROWS);
    let mut table = Table::new(vec![
        Column::Number("COUNT"),
        Column::Number("TOTAL"),
        Column::Number("MEDIAN"),
        Column::Number("90 %"),
        Column::Number("99 %"),
        Column::Number("LONGEST"),
        Column::Minor("KIND"),
        Column::Main("MARKER"),
    ]);
    for kind in kinds.iter().take(limit) {
        table.add(row(report, kind));
    }
    table.render(report.screen)
        + more(kinds.len().saturating_sub(limit), "kind of markers", "kinds of markers")
}

fn row(report: &Report<'_>, kind: &MarkerKind<'_>) -> Vec<Cell> {
    let mut cells = vec![grouped(kind.count).into()];
    let times = kind.durations.map(|it| [it.total_ns, it.p50_ns, it.p90_ns, it.p99_ns, it.max_ns]);
    match times {
        Some(times) => cells.extend(times.map(|time| Cell::from(duration(time)))),
        None => cells.extend(std::iter::repeat_n(Cell::default(), 5)),
    }
    cells.push(Cell::new(report.names.show(kind.schema.unwrap_or_default()), Style::Dim));
    cells.push(report.names.show(kind.name).into());
    cells
}

/// A duration in the unit that gives it one to three digits before the point.
pub(super) fn duration(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match value {
        value if value < 999.5 => format!("{value} ns"),
        value if value < 999_500.0 => format!("{:.1} us", value / 1e3),
        value if value < 999_500_000.0 => format!("{:.1} ms", value / 1e6),
        value => format!("{:.2} s", value / 1e9),
    }
}

pub(super) fn list<'a>(report: &Report<'a>) -> List<MarkerRow<'a>> {
    let rows = Rows::of(report.view);
    List::new("marker", "markers", report.limit(TABLE_ROWS), &report.view.markers(), |kind| rows.marker(kind))
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_have_a_fitting_unit() {
        let check = |nanoseconds, expected| assert_eq!(duration(nanoseconds), expected);
        check(0, "0 ns");
        check(999, "999 ns");
        check(1500, "1.5 us");
        check(999_600, "1.0 ms");
        check(12_340_000, "12.3 ms");
        check(1_500_000_000, "1.50 s");
    }
}
