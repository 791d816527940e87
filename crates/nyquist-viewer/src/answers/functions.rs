//! `functions`, `callers` and `search`: functions without their paths.

use std::collections::HashSet;

use nyquist_analysis::schema::{CallSiteRow, FunctionRow, NeighborRow, Whole};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::errors::bad_request;
use crate::function_table::FunctionTable;
use crate::parameters::name_search;
use crate::selection::function;

/// The maximum number of rows of a response.
const MAX_ROWS: usize = 1000;

/// The maximum number of lines with calls of a function: as many as a menu can hold.
const MAX_CALL_SITES: usize = 50;

#[derive(Debug, Serialize)]
pub(super) struct FunctionsAnswer<'a> {
    #[serde(flatten)]
    whole: Whole,
    count: usize,
    rows: Vec<FunctionRow<'a>>,
    functions: FunctionTable<'a>,
}

pub(super) fn list<'a>(context: &QueryContext<'_, 'a>) -> Result<FunctionsAnswer<'a>, ViewerError> {
    let offset = context.parameters.at_most("offset", 0, usize::MAX)?;
    let limit = context.parameters.at_most("limit", 200, MAX_ROWS)?;
    let by_total = match context.parameters.get("sort") {
        None | Some("self" | "own") => false,
        Some("total") => true,
        Some(_) => return Err(bad_request("sort takes self or total")),
    };
    let search = context.parameters.get("search").map(name_search).transpose()?;
    let mut functions = context.view.functions().functions;
    functions.retain(|one| search.as_ref().is_none_or(|search| search.matches(one.name)));
    if by_total {
        functions.sort_by_key(|one| std::cmp::Reverse((one.total, one.self_amount)));
    }
    let mut table = FunctionTable::with_places();
    let (rows, count) = (context.rows(), functions.len());
    let shown: Vec<_> = functions.iter().skip(offset).take(limit).collect();
    for one in &shown {
        context.number(&mut table, one.func);
    }
    let shown = shown.into_iter().map(|one| rows.function(one)).collect();
    Ok(FunctionsAnswer { whole: rows.whole(), count, rows: shown, functions: table })
}

#[derive(Debug, Serialize)]
pub(super) struct NeighboursAnswer<'a> {
    #[serde(flatten)]
    whole: Whole,
    function: FunctionRow<'a>,
    callers: Vec<NeighborRow<'a>>,
    callees: Vec<NeighborRow<'a>>,
    /// The lines of the calls.
    sites: Vec<CallSiteRow<'a>>,
    functions: FunctionTable<'a>,
}

pub(super) fn callers<'a>(context: &QueryContext<'_, 'a>) -> Result<NeighboursAnswer<'a>, ViewerError> {
    let func = function(context.parameters.required("function")?, context.view.profile())?;
    let peek = context.view.peek(func);
    let sites = context.view.call_sites(func);
    let neighbors = peek.callers.iter().take(MAX_ROWS).chain(peek.callees.iter().take(MAX_ROWS));
    let callers = sites.iter().take(MAX_CALL_SITES).map(|site| site.caller);
    let mut functions = FunctionTable::with_places();
    for func in std::iter::once(func).chain(neighbors.filter_map(|one| one.func)).chain(callers) {
        context.number(&mut functions, func);
    }
    let rows = context.rows();
    let details = rows.details(&peek, MAX_ROWS);
    Ok(NeighboursAnswer {
        whole: rows.whole(),
        function: details.function,
        callers: details.callers.rows,
        callees: details.callees.rows,
        sites: sites.iter().take(MAX_CALL_SITES).map(|site| rows.call_site(site)).collect(),
        functions,
    })
}

#[derive(Debug, Serialize)]
pub(super) struct SearchTotals {
    weight: u64,
    matched: u64,
    functions: usize,
}

pub(super) fn search(context: &QueryContext<'_, '_>) -> Result<SearchTotals, ViewerError> {
    let text = context.parameters.get("q").ok_or_else(|| bad_request("the parameter q is missing"))?;
    let requested = name_search(text)?;
    // Only names are searched, because boxes are marked by name. A filter also checks files and libs.
    let functions = context.view.functions().functions;
    let functions: HashSet<_> =
        functions.iter().filter(|one| requested.matches(one.name)).map(|one| one.func).collect();
    let matched = context.view.total_with(|func| functions.contains(&func)).weight;
    Ok(SearchTotals { weight: context.view.total().weight, matched, functions: functions.len() })
}
