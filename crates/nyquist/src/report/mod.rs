//! `nyquist report`: where the time went, seen in one of seven ways, as text or JSON.

mod functions;
mod heading;
mod libs;
mod lines;
mod markers;
mod rows;
mod threads;
mod tree;

use crate::args::{ReportArgs, ViewArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::{Names, Screen, Text};
use crate::{input, page, selection};
use nyquist_analysis::{Index, View};
use serde_json::{Value, json};

pub(crate) use heading::{heading, kind, shares, summary_json};
pub(crate) use tree::{TreeOptions, tree_nodes};

/// How many rows tables have unless told otherwise.
const TABLE_ROWS: usize = 30;

/// How many rows trees have unless told otherwise, and the least share of their nodes in per cent.
const TREE_ROWS: usize = 200;
const TREE_PERCENT: f64 = 0.5;

/// What the views are made of.
struct Report<'a> {
    args: &'a ReportArgs,
    view: &'a View<'a>,
    scale: Scale,
    screen: Screen,
    names: Names,
}

/// Runs the subcommand.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let mut profile = input::read(&args.file, &args.symbols, Printer::new(args.verbosity))?;
    selection::split(&mut profile, &args.filter);
    let selected = selection::select(&profile, &args.filter)?;
    let index = Index::new(&profile);
    let view = View::new(&index, &selected);
    if view.is_empty() && !args.view.markers {
        return Err(selection::nothing_selected(&view, &args.filter));
    }
    let report = Report {
        args,
        view: &view,
        scale: Scale::of(&view),
        screen: Screen::of_stdout(),
        names: args.format.names(),
    };
    if args.format.json { page::print_json(&report.json()) } else { page::print(report.text()) }
}

impl Report<'_> {
    fn text(&self) -> Text {
        let body = match self.args.view {
            ViewArgs { tree: true, .. } => tree::text(self, false),
            ViewArgs { inverted: true, .. } => tree::text(self, true),
            ViewArgs { lines: true, .. } => lines::text(self),
            ViewArgs { libs: true, .. } => libs::text(self),
            ViewArgs { threads: true, .. } => threads::text(self),
            ViewArgs { markers: true, .. } => markers::text(self),
            _ => functions::text(self),
        };
        Text::from(heading(self.view)) + "\n" + body
    }

    fn json(&self) -> Value {
        let (name, members) = match self.args.view {
            ViewArgs { tree: true, .. } => ("tree", tree::json(self, false)),
            ViewArgs { inverted: true, .. } => ("inverted", tree::json(self, true)),
            ViewArgs { lines: true, .. } => ("lines", lines::json(self)),
            ViewArgs { libs: true, .. } => ("libs", libs::json(self)),
            ViewArgs { threads: true, .. } => ("threads", threads::json(self)),
            ViewArgs { markers: true, .. } => ("markers", markers::json(self)),
            _ => ("functions", functions::json(self)),
        };
        let mut json = summary_json(self.view);
        json["schema"] = json!("nyquist-report/1");
        json["view"] = json!(name);
        merge(&mut json, members);
        json
    }

    /// How many rows are shown.
    fn limit(&self, usual: usize) -> usize {
        match self.args.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None => usual,
        }
    }

    /// The least weight that is shown.
    fn min_weight(&self, usual_percent: f64) -> u64 {
        self.scale.weight_of_percent(self.args.percent.unwrap_or(usual_percent))
    }
}

/// Adds the members of one object to another.
pub(crate) fn merge(json: &mut Value, members: Value) {
    if let (Some(json), Value::Object(members)) = (json.as_object_mut(), members) {
        json.extend(members);
    }
}

/// Says how many rows are not shown.
fn more(count: usize, what: &str, plural: &str) -> String {
    if count == 0 {
        return String::new();
    }
    let what = if count == 1 { what } else { plural };
    format!("{} more {what} (--limit 0 shows all)\n", crate::number::grouped(count as u64))
}
