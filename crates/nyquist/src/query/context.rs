//! A query with the profile: the data for answers.

use super::answer::Answer;
use super::cells::milliseconds;
use crate::args::QueryArgs;
use crate::scale::Scale;
use crate::shell;
use crate::text::Names;
use nyquist_analysis::schema::Rows;
use nyquist_analysis::{Index, SampleState, View};
use nyquist_profile::Unit;
use serde_json::{Value, json};
use std::ffi::OsString;

/// A query with its profile.
pub(super) struct QueryContext<'a> {
    pub(super) args: &'a QueryArgs,
    pub(super) index: &'a Index<'a>,
    pub(super) view: &'a View<'a>,
    pub(super) rows: Rows<'a>,
    pub(super) scale: Scale,
    pub(super) names: Names,
    pub(super) limit: usize,
}

impl<'a> QueryContext<'a> {
    /// The function that was requested by name or handle.
    pub(super) fn target(&self) -> Option<&'a str> {
        self.args.target.as_deref()
    }

    /// An answer with what its amounts are parts of.
    pub(super) fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        answer.add(&self.rows.whole());
        answer
    }

    /// A weight in the profile's unit: ms for times.
    pub(super) fn amount(&self, weight: u64) -> Value {
        let amount = self.rows.whole().amount(weight);
        if self.scale.unit == Unit::Time { milliseconds(amount) } else { json!(amount) }
    }

    /// The name of the whole amount, by what the weights are.
    pub(super) fn total_name(&self) -> &'static str {
        match self.view.selection().state {
            _ if self.scale.unit != Unit::Time => "total",
            SampleState::OnCpu if self.view.profile().meta().measure.is_cpu_time() => "cpu_ms",
            SampleState::OnCpu => "total_ms",
            SampleState::OffCpu => "waiting_ms",
            SampleState::Both => "wall_ms",
        }
    }

    /// The columns for times, or those for amounts in other units.
    pub(super) fn columns(
        &self,
        times: &'static [&'static str],
        amounts: &'static [&'static str],
    ) -> &'static [&'static str] {
        if self.scale.unit == Unit::Time { times } else { amounts }
    }

    /// A command for a further query about the same part of the profile.
    pub(super) fn next(&self, argv: &[&str]) -> String {
        next(self.args, argv)
    }

    /// A command for a further query about waiting, of the same part of the profile.
    pub(super) fn next_of_waits(&self, argv: &[&str]) -> String {
        let typed = &self.args.read.filter;
        let is_said = typed.off_cpu || typed.wall;
        next(self.args, &[argv, if is_said { &[] } else { &["--off-cpu"][..] }].concat())
    }

    /// A command that shows the code of a function, of the same part of the profile.
    pub(super) fn annotate(&self, handle: &str) -> String {
        let argv = ["annotate".into(), handle.into(), self.args.file.clone().into_os_string()];
        shell::nyquist(argv.into_iter().chain(self.args.read.typed.argv()).chain(["--json".into()]))
    }
}

/// A command for a query with the same filters.
pub(super) fn next(args: &QueryArgs, argv: &[&str]) -> String {
    let query = ["query".into(), args.file.clone().into_os_string()];
    let argv = argv.iter().map(OsString::from);
    shell::nyquist(query.into_iter().chain(argv).chain(args.read.typed.argv()))
}
