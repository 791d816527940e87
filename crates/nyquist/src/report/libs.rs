//! Programs and libraries by self and total time.

use super::context::{Report, TABLE_ROWS};
use super::rows::{Row, Rows, choose};
use crate::text::Text;
use nyquist_analysis::LibRow;
use serde_json::{Value, json};

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
    Rows { heading: "LIB", nouns: ["library", "libraries"], have_libs: false, all }.render(report)
}

pub(super) fn json(report: &Report<'_>) -> Value {
    let libs = libs(report);
    let lib = |lib: &LibRow<'_>| {
        json!({
            "lib": lib.name,
            "path": lib.path,
            "self": lib.self_amount.weight,
            "total": lib.total.weight,
            "self_share": report.scale.share(lib.self_amount.weight),
            "total_share": report.scale.share(lib.total.weight),
        })
    };
    json!({
        "lib_count": libs.len(),
        "libs": libs.iter().take(report.limit(TABLE_ROWS)).map(lib).collect::<Vec<_>>(),
    })
}
