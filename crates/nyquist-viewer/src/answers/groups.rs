//! `groups`: the amounts of files, of crates and namespaces, or of libs.

use nyquist_analysis::FunctionGrouping;
use nyquist_analysis::schema::{GroupRow, Whole};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::errors::bad_request;
use crate::parameters::name_search;

/// The maximum number of rows of a response.
const MAX_ROWS: usize = 1000;

#[derive(Debug, Serialize)]
pub(super) struct GroupsAnswer<'a> {
    #[serde(flatten)]
    whole: Whole,
    count: usize,
    rows: Vec<GroupRow<'a>>,
}

pub(super) fn answer<'a>(context: &QueryContext<'_, 'a>) -> Result<GroupsAnswer<'a>, ViewerError> {
    let grouping = match context.parameters.get("by") {
        Some("file") => FunctionGrouping::File,
        Some("module") => FunctionGrouping::Module,
        Some("lib") => FunctionGrouping::Lib,
        _ => return Err(bad_request("by takes file, module or lib")),
    };
    let by_total = match context.parameters.get("sort") {
        None | Some("self" | "own") => false,
        Some("total") => true,
        Some(_) => return Err(bad_request("sort takes self or total")),
    };
    let search = context.parameters.get("search").map(name_search).transpose()?;
    let mut groups = context.view.by_function_group(grouping);
    groups
        .retain(|group| search.as_ref().is_none_or(|search| search.matches(group.name.unwrap_or_default())));
    if by_total {
        groups.sort_by_key(|group| std::cmp::Reverse((group.total, group.self_amount)));
    }
    let rows = context.rows();
    let shown = groups.iter().take(MAX_ROWS).map(|group| rows.group(group)).collect();
    Ok(GroupsAnswer { whole: rows.whole(), count: groups.len(), rows: shown })
}
