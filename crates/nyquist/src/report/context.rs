//! The context of all views of a report: the profile, the format, and the limits.

use crate::args::ReportArgs;
use crate::number::grouped;
use crate::scale::Scale;
use crate::text::{Names, Screen};
use nyquist_analysis::View;

/// The default number of rows of tables.
pub(super) const TABLE_ROWS: usize = 30;

/// The default number of rows of trees, and the least share of their nodes in per cent.
pub(super) const TREE_ROWS: usize = 200;
pub(super) const TREE_PERCENT: f64 = 0.5;

/// The context of the views.
pub(super) struct Report<'a> {
    pub(super) args: &'a ReportArgs,
    pub(super) view: &'a View<'a>,
    pub(super) scale: Scale,
    pub(super) screen: Screen,
    pub(super) names: Names,
}

impl Report<'_> {
    /// The maximum number of rows.
    pub(super) fn limit(&self, usual: usize) -> usize {
        limit(self.args.limit, usual)
    }

    /// The least weight that is shown.
    pub(super) fn min_weight(&self, usual_percent: f64) -> u64 {
        self.scale.weight_of_percent(self.args.percent.unwrap_or(usual_percent))
    }
}

/// The maximum number of rows, if a limit is requested.
pub(super) fn limit(requested: Option<usize>, usual: usize) -> usize {
    match requested {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None => usual,
    }
}

/// A line about the number of rows that are not shown.
pub(super) fn more(count: usize, what: &str, plural: &str) -> String {
    if count == 0 {
        return String::new();
    }
    let what = if count == 1 { what } else { plural };
    format!("{} more {what} (--limit 0 shows all)\n", grouped(count as u64))
}
