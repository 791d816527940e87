//! `diff`: functions that became slower or faster since the other run, and noise.

use std::collections::HashMap;

use nyquist_analysis::{Comparison, DiffOptions, DiffUnit, comparable_name};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::errors::bad_request;
use crate::function_table::FunctionTable;

/// The maximum number of rows of a response.
const MAX_ROWS: usize = 2000;

#[derive(Debug, Serialize)]
pub(super) struct DiffTable<'a> {
    unit: DiffUnit,
    whole: Comparison,
    count: usize,
    noise_count: usize,
    rows: Vec<DiffRow<'a>>,
    functions: FunctionTable<'a>,
}

#[derive(Debug, Serialize)]
struct DiffRow<'a> {
    /// Its number, if the shown profile has the function.
    function: Option<usize>,
    name: String,
    lib: Option<&'a str>,
    #[serde(rename = "self")]
    own: Comparison,
}

/// The functions by the change of their self time: slower ones first, then faster ones, each with the
/// greatest change first. Noise comes last.
pub(super) fn table<'a>(context: &QueryContext<'_, 'a>) -> Result<DiffTable<'a>, ViewerError> {
    let unit = match context.parameters.get("unit") {
        None | Some("ns") => DiffUnit::Nanoseconds,
        Some("share") => DiffUnit::Share,
        Some(_) => return Err(bad_request("unit takes ns or share")),
    };
    let limit = context.parameters.at_most("limit", 200, MAX_ROWS)?;
    let options = DiffOptions { unit, ..DiffOptions::default() };
    let mut diff = nyquist_analysis::diff(&[context.before()?], &[context.view], &options);
    diff.functions.retain(|one| one.self_time.before > 0.0 || one.self_time.after > 0.0);
    // The order within each part stays.
    diff.functions.sort_by_key(|one| (one.self_time.is_noise, one.self_time.change <= 0.0));
    let (count, noise) =
        (diff.functions.len(), diff.functions.iter().filter(|one| one.self_time.is_noise).count());
    let numbers = numbers(context);
    let mut functions = FunctionTable::new();
    let rows = diff.functions.into_iter().take(limit).map(|one| DiffRow {
        function: numbers.get(&one.name).map(|func| context.number(&mut functions, *func)),
        own: one.self_time,
        lib: one.lib,
        name: one.name,
    });
    let rows = rows.collect();
    Ok(DiffTable { unit, whole: diff.total, count, noise_count: noise, rows, functions })
}

/// The functions of the shown profile, by comparable name; of several with one name, the one with the most
/// time.
fn numbers(context: &QueryContext<'_, '_>) -> HashMap<String, nyquist_profile::FuncId> {
    let mut numbers = HashMap::new();
    for function in context.view.functions().functions {
        if let Some(name) = comparable_name(function.name) {
            numbers.entry(name.into_owned()).or_insert(function.func);
        }
    }
    numbers
}
