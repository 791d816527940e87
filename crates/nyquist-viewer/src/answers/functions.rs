//! `functions`, `callers` and `search`: functions without their paths.

use std::collections::HashSet;

use nyquist_analysis::Neighbour;
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
    weight: u64,
    interval_ns: u64,
    count: usize,
    /// Function, self weight, total weight.
    rows: Vec<(usize, u64, u64)>,
    functions: FunctionTable<'a>,
}

pub(super) fn list<'a>(context: &QueryContext<'_, 'a>) -> Result<FunctionsAnswer<'a>, ViewerError> {
    let offset = context.parameters.at_most("offset", 0, usize::MAX)?;
    let limit = context.parameters.at_most("limit", 200, MAX_ROWS)?;
    let by_total = match context.parameters.get("sort") {
        None | Some("own") => false,
        Some("total") => true,
        Some(_) => return Err(bad_request("sort takes own or total")),
    };
    let search = context.parameters.get("search").map(name_search).transpose()?;
    let mut functions = context.view.functions().functions;
    functions.retain(|one| search.as_ref().is_none_or(|search| search.matches(one.name)));
    if by_total {
        functions.sort_by_key(|one| std::cmp::Reverse((one.total, one.self_amount)));
    }
    let mut table = FunctionTable::with_places();
    let shown = functions.iter().skip(offset).take(limit);
    let rows = shown
        .map(|one| (context.number(&mut table, one.func), one.self_amount.weight, one.total.weight))
        .collect();
    Ok(FunctionsAnswer {
        weight: context.view.total().weight,
        interval_ns: context.interval_ns(),
        count: functions.len(),
        rows,
        functions: table,
    })
}

#[derive(Debug, Serialize)]
pub(super) struct NeighboursAnswer<'a> {
    weight: u64,
    interval_ns: u64,
    function: (usize, u64, u64),
    callers: Vec<(Option<usize>, u64)>,
    callees: Vec<(Option<usize>, u64)>,
    /// The lines of the calls: caller, file, line, and the weight of the calls.
    sites: Vec<(usize, Option<&'a str>, Option<u32>, u64)>,
    functions: FunctionTable<'a>,
}

pub(super) fn callers<'a>(context: &QueryContext<'_, 'a>) -> Result<NeighboursAnswer<'a>, ViewerError> {
    let func = function(context.parameters.required("function")?, context.view.profile())?;
    let peek = context.view.peek(func);
    let mut functions = FunctionTable::with_places();
    let (own, total) = (peek.function.self_amount.weight, peek.function.total.weight);
    let function = (context.number(&mut functions, func), own, total);
    let mut rows = |neighbours: &[Neighbour<'_>]| -> Vec<_> {
        let shown = neighbours.iter().take(MAX_ROWS);
        shown
            .map(|one| (one.func.map(|func| context.number(&mut functions, func)), one.total.weight))
            .collect()
    };
    let (callers, callees) = (rows(&peek.callers), rows(&peek.callees));
    let sites = context.view.call_sites(func).into_iter().take(MAX_CALL_SITES);
    let sites = sites
        .map(|site| (context.number(&mut functions, site.caller), site.file, site.line, site.total.weight))
        .collect();
    Ok(NeighboursAnswer {
        weight: context.view.total().weight,
        interval_ns: context.interval_ns(),
        function,
        callers,
        callees,
        sites,
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
