//! What a request of the page is answered from.

use nyquist_analysis::schema::Rows;
use nyquist_analysis::{Index, View};
use nyquist_profile::FuncId;
use nyquist_server::{SymbolSource, ViewerError};

use crate::function_table::{FunctionCategories, FunctionTable};
use crate::measures::RecordedMeasures;

use crate::errors::bad_request;
use crate::parameters::Parameters;
use crate::viewed_profile::FileNames;

/// A request and its selection.
#[derive(Clone, Copy)]
pub(crate) struct QueryContext<'q, 'a> {
    pub(crate) index: &'a Index<'a>,
    pub(crate) view: &'q View<'a>,
    /// The same selection of the other run.
    pub(crate) before: Option<&'q View<'a>>,
    pub(crate) parameters: &'q Parameters,
    pub(crate) categories: &'q FunctionCategories,
    pub(crate) symbols: &'q dyn SymbolSource,
    pub(crate) recorded: &'q RecordedMeasures,
    /// The names of the files.
    pub(crate) files: &'q FileNames,
    /// Whether waits were recorded.
    pub(crate) has_waits: bool,
    /// For a recording that is shown since it was running: its end so far, in ns since the profile's zero.
    pub(crate) live: Option<u64>,
}

impl<'a> QueryContext<'_, 'a> {
    /// The number of a function in a table, which then includes it.
    pub(super) fn number(&self, table: &mut FunctionTable<'a>, func: FuncId) -> usize {
        table.number(self.view, self.categories, func)
    }

    /// The maker of the schema's rows.
    pub(super) fn rows(&self) -> Rows<'a> {
        Rows::of(self.view)
    }

    /// The other run of a comparison.
    pub(super) fn before(&self) -> Result<&View<'a>, ViewerError> {
        let missing = "no other profile is here to compare with: nyquist load BEFORE AFTER";
        self.before.ok_or_else(|| bad_request(missing))
    }

    /// The time of a weight of 1, in ns.
    pub(super) fn interval_ns(&self) -> u64 {
        self.view.profile().meta().interval
    }
}
