//! Source lines by self and total time.

use super::context::{Report, TABLE_ROWS};
use super::functions::place;
use super::rows::{Row, Table, choose};
use crate::text::Text;
use nyquist_analysis::schema::{self, List};
use nyquist_analysis::{CodeSelection, LineAmounts};
use nyquist_symbols::short_source_path;

fn lines<'a>(report: &Report<'a>) -> Vec<LineAmounts<'a>> {
    let mut lines = report.view.lines(CodeSelection::All);
    choose(report, &mut lines, |it| [it.self_amount, it.total], |it| place(it.file, it.line));
    lines
}

pub(super) fn text(report: &Report<'_>) -> Text {
    let row = |line: &LineAmounts<'_>| Row {
        own: line.self_amount.weight,
        total: line.total.weight,
        name: match (line.file, line.line) {
            (Some(file), Some(number)) => format!("{}:{number}", short_source_path(file)),
            (Some(file), None) => format!("{} (line not known)", short_source_path(file)),
            (None, _) => "(source not known)".to_owned(),
        },
        ..Row::default()
    };
    let all = lines(report).iter().map(row).collect();
    Table { heading: "LINE", nouns: ["line", "lines"], have_libs: false, all }.render(report)
}

pub(super) fn list<'a>(report: &Report<'a>) -> List<schema::LineRow<'a>> {
    let rows = schema::Rows::of(report.view);
    List::new("line", "lines", report.limit(TABLE_ROWS), &lines(report), |line| rows.line(line))
}
