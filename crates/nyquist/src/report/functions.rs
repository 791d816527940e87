//! Functions by self and total time.

use super::context::{Report, TABLE_ROWS};
use super::rows::{Row, Table, choose};
use crate::text::Text;
use nyquist_analysis::Function;
use nyquist_analysis::schema::{FunctionRow, List, Rows};
use nyquist_symbols::short_source_path;

fn functions<'a>(report: &Report<'a>) -> Vec<Function<'a>> {
    let mut functions = report.view.functions().functions;
    choose(report, &mut functions, |it| [it.self_amount, it.total], |it| report.names.show(it.name));
    functions
}

pub(super) fn text(report: &Report<'_>) -> Text {
    let row = |function: &Function<'_>| Row {
        own: function.self_amount.weight,
        total: function.total.weight,
        name: report.names.show(function.name),
        lib: function.lib.unwrap_or_default().to_owned(),
        file: place(function.file.map(short_source_path).as_deref(), function.line),
        handle: format!("f-{}", function.func.index()),
    };
    let all = functions(report).iter().map(row).collect();
    Table { heading: "FUNCTION", nouns: ["function", "functions"], have_libs: true, all }.render(report)
}

/// A file with a line.
pub(super) fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (file, _) => file.unwrap_or_default().to_owned(),
    }
}

pub(super) fn list<'a>(report: &Report<'a>) -> List<FunctionRow<'a>> {
    let (rows, functions) = (Rows::of(report.view), functions(report));
    List::new("function", "functions", report.limit(TABLE_ROWS), &functions, |function| {
        rows.function(function)
    })
}
