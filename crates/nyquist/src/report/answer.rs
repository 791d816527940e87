//! What `report --json` prints: what all answers have, and the rows of a view.

use crate::failure::Failure;
use crate::page;
use nyquist_analysis::View;
use nyquist_analysis::schema::{CounterRow, Summary};
use serde::Serialize;

/// What `report --json` prints. The answer of a view is part of the same object.
#[derive(Serialize)]
struct Answer<'a, B> {
    schema: &'static str,
    view: &'static str,
    counters: Vec<CounterRow<'a>>,
    #[serde(flatten)]
    summary: Summary<'a>,
    #[serde(flatten)]
    body: B,
}

/// Prints an answer with what all answers have.
pub(super) fn print_answer(view: &View<'_>, name: &'static str, body: impl Serialize) -> Result<(), Failure> {
    let (summary, counters) = (Summary::of(view), CounterRow::all(view));
    page::print_json(&Answer { schema: "nyquist-report/1", view: name, counters, summary, body })
}
