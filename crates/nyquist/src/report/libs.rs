//! Programs and libraries by self and total time.

use super::context::{Report, TABLE_ROWS};
use super::rows::{Row, Table, choose};
use crate::text::Text;
use nyquist_analysis::LibRow;
use nyquist_analysis::schema::{self, List};

fn libs<'a>(report: &Report<'a>) -> Vec<LibRow<'a>> {
    let mut libs = report.view.by_lib();
    choose(report, &mut libs, |it| [it.self_amount, it.total], |it| it.name.unwrap_or_default().to_owned());
    libs
}

pub(super) fn text(report: &Report<'_>) -> Text {
    let row = |lib: &LibRow<'_>| Row {
        own: lib.self_amount.weight,
        total: lib.total.weight,
        name: lib.name.unwrap_or("(no library)").to_owned(),
        file: lib.path.unwrap_or_default().to_owned(),
        ..Row::default()
    };
    let all = libs(report).iter().map(row).collect();
    Table { heading: "LIB", nouns: ["library", "libraries"], have_libs: false, all }.render(report)
}

pub(super) fn list<'a>(report: &Report<'a>) -> List<schema::LibRow<'a>> {
    let rows = schema::Rows::of(report.view);
    List::new("lib", "libs", report.limit(TABLE_ROWS), &libs(report), |lib| rows.lib(lib))
}
