//! Functions by self and total time.

use super::context::{Report, TABLE_ROWS};
use super::heading::add_members;
use super::rows::{Row, Rows, choose};
use crate::scale::{Scale, standard_error};
use crate::text::Text;
use nyquist_analysis::Function;
use nyquist_symbols::short_source_path;
use serde_json::{Value, json};

fn functions<'a>(report: &Report<'a>) -> (usize, Vec<Function<'a>>) {
    let mut functions = report.view.functions().functions;
    let count = functions.len();
    choose(report, &mut functions, |it| [it.self_amount, it.total], |it| report.names.show(it.name));
    (count, functions)
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
    let all = functions(report).1.iter().map(row).collect();
    Rows { heading: "FUNCTION", nouns: ["function", "functions"], have_libs: true, all }.render(report)
}

/// A file with a line.
pub(super) fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (file, _) => file.unwrap_or_default().to_owned(),
    }
}

pub(super) fn json(report: &Report<'_>) -> Value {
    let (count, functions) = functions(report);
    let rows = functions.iter().take(report.limit(TABLE_ROWS));
    let row = |function: &Function<'_>| {
        let error = |weight| standard_error(report.view.profile().meta(), weight);
        let errors = (error(function.self_amount.weight), error(function.total.weight));
        let mut json = function_json(function, report.scale);
        add_members(&mut json, json!({ "self_error": errors.0, "total_error": errors.1 }));
        json
    };
    json!({
        "function_count": count,
        "functions": rows.map(row).collect::<Vec<_>>(),
    })
}

/// A function as JSON.
pub(super) fn function_json(function: &Function<'_>, scale: Scale) -> Value {
    json!({
        "handle": format!("f-{}", function.func.index()),
        "function": function.name,
        "lib": function.lib,
        "file": function.file,
        "self": function.self_amount.weight,
        "total": function.total.weight,
        "self_share": scale.share(function.self_amount.weight),
        "total_share": scale.share(function.total.weight),
    })
}
