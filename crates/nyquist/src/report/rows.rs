//! Tables of items with self and total time: functions, lines, libs.

use super::context::{Report, TABLE_ROWS, more};
use crate::args::{ColumnName, SortBy};
use crate::number::percent;
use crate::text::{self, Cell, Column, Style, Text, bar};
use nyquist_analysis::Amount;
use nyquist_analysis::schema::Whole;

/// The columns of tables with self and total time. Bars are shown if colours are.
const COLUMNS: [ColumnName; 7] = [
    ColumnName::SelfShare,
    ColumnName::Bar,
    ColumnName::SelfTime,
    ColumnName::Total,
    ColumnName::TotalTime,
    ColumnName::Lib,
    ColumnName::Name,
];

/// A row of such a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) own: u64,
    pub(super) total: u64,
    pub(super) name: String,
    pub(super) lib: String,
    pub(super) file: String,
    pub(super) handle: String,
}

/// Rows with a common name.
pub(super) struct Table {
    /// The heading of their names.
    pub(super) heading: &'static str,
    /// The singular and the plural of the rows' kind.
    pub(super) nouns: [&'static str; 2],
    /// Whether each row has a lib.
    pub(super) have_libs: bool,
    pub(super) all: Vec<Row>,
}

/// Sorts, and leaves out rows below the least share.
pub(super) fn choose<T>(
    report: &Report<'_>,
    rows: &mut Vec<T>,
    amounts: impl Fn(&T) -> [Amount; 2],
    name: impl Fn(&T) -> String,
) {
    let least = report.min_weight(0.0);
    rows.retain(|row| amounts(row).iter().any(|amount| amount.weight >= least));
    match report.args.sort {
        // The order of the analysis.
        SortBy::Own => {}
        SortBy::Total => rows.sort_by_key(|row| std::cmp::Reverse(amounts(row)[1])),
        SortBy::Name => rows.sort_by_cached_key(name),
    }
}

impl Table {
    /// The table, and the number of rows that are left out.
    pub(super) fn render(&self, report: &Report<'_>) -> Text {
        let columns = self.columns(report);
        let table = text::Table::new(columns.iter().map(|&column| self.layout(column)).collect());
        let mut table = table.keeping_all(!report.args.columns.is_empty());
        let limit = report.limit(TABLE_ROWS);
        for row in self.all.iter().take(limit) {
            table.add(columns.iter().map(|&column| cell(report, row, column)).collect());
        }
        let hidden = self.all.len().saturating_sub(limit);
        table.render(report.screen) + more(hidden, self.nouns[0], self.nouns[1])
    }

    fn columns(&self, report: &Report<'_>) -> Vec<ColumnName> {
        if !report.args.columns.is_empty() {
            return report.args.columns.clone();
        }
        let is_usual = |column: &ColumnName| match column {
            ColumnName::Bar => report.screen.colour,
            ColumnName::Lib => self.have_libs,
            _ => true,
        };
        COLUMNS.into_iter().filter(is_usual).collect()
    }

    fn layout(&self, column: ColumnName) -> Column {
        match column {
            ColumnName::SelfShare => Column::Number("SELF"),
            ColumnName::Total => Column::Number("TOTAL"),
            ColumnName::SelfTime | ColumnName::TotalTime => Column::Number(""),
            ColumnName::Bar => Column::Text(""),
            ColumnName::Handle => Column::Text("HANDLE"),
            ColumnName::Lib => Column::Minor("LIB"),
            ColumnName::File => Column::Minor("FILE"),
            ColumnName::Name => Column::Main(self.heading),
        }
    }
}

/// An amount with its standard error, if it is an estimate.
fn with_error(report: &Report<'_>, weight: u64) -> String {
    let amount = report.scale.time(weight);
    match Whole::of(report.view).standard_error(weight).filter(|_| weight > 0) {
        Some(error) => format!("{amount} ± {}", percent(error / weight as f64)),
        None => amount,
    }
}

fn cell(report: &Report<'_>, row: &Row, column: ColumnName) -> Cell {
    let scale = report.scale;
    let style = |weight: u64| Style::of_share(scale.share(weight));
    match column {
        ColumnName::SelfShare => Cell::new(scale.percent(row.own), style(row.own)),
        ColumnName::Total => Cell::new(scale.percent(row.total), style(row.total)),
        ColumnName::SelfTime => Cell::new(scale.time(row.own), Style::Dim),
        ColumnName::TotalTime => Cell::new(with_error(report, row.total), Style::Dim),
        ColumnName::Bar => {
            let width = if report.screen.width.is_some_and(|width| width >= 120) { 16 } else { 6 };
            Cell::new(bar(scale.share(row.own), width, report.screen.unicode), style(row.own))
        }
        ColumnName::Lib => Cell::new(row.lib.as_str(), Style::Dim),
        ColumnName::File => Cell::new(row.file.as_str(), Style::Dim),
        ColumnName::Handle => row.handle.as_str().into(),
        ColumnName::Name => row.name.as_str().into(),
    }
}
