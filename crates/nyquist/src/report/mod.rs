//! `nyquist report`: the time by one of nine criteria, as text or JSON.

mod context;
mod flame;
mod functions;
mod heading;
mod libs;
mod lines;
mod markers;
mod processes;
mod ratios;
mod rows;
mod threads;
mod tree;
mod usage;
mod waits;

use crate::args::{ReportArgs, ViewArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::{Screen, Text};
use crate::{input, page, selection};
use context::Report;
use nyquist_analysis::{Index, SampleState, View};
use serde_json::{Value, json};

pub(crate) use heading::{heading, kind, shares, summary_json};
pub(crate) use tree::{TreeOptions, tree_nodes};
pub(crate) use waits::places as wait_places;

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &ReportArgs) -> Result<u8, Failure> {
    if let Some(text) = &args.ratio {
        return ratios::run(args, text).map(|()| 0);
    }
    let mut profile =
        input::read(&args.file, &args.read.filter, &args.read.symbols, Printer::new(args.read.verbosity))?;
    selection::split(&mut profile, &args.read.filter);
    let mut selected = selection::select(&profile, &args.read.filter)?;
    if args.view.waits {
        selected.state = SampleState::OffCpu;
    }
    let index = Index::new(&profile);
    let view = View::new(&index, &selected);
    if view.is_empty() && !args.view.markers && !args.view.waits {
        return Err(selection::nothing_selected(&view, &args.read.filter));
    }
    let report = Report {
        args,
        view: &view,
        scale: Scale::of(&view),
        screen: Screen::of_stdout(),
        names: args.format.names(),
    };
    if args.view.flame
        && let Some(status) = flame::show(&report)?
    {
        return Ok(status);
    }
    let printed =
        if args.format.json { page::print_json(&json_of(&report)) } else { page::print(text_of(&report)) };
    printed.map(|()| 0)
}

fn text_of(report: &Report<'_>) -> Text {
    let body = match report.args.view {
        ViewArgs { tree: true, .. } => tree::text(report, false),
        ViewArgs { inverted: true, .. } => tree::text(report, true),
        ViewArgs { lines: true, .. } => lines::text(report),
        ViewArgs { libs: true, .. } => libs::text(report),
        ViewArgs { threads: true, .. } => threads::text(report),
        ViewArgs { processes: true, .. } => processes::text(report),
        ViewArgs { markers: true, .. } => markers::text(report),
        ViewArgs { waits: true, .. } => waits::text(report),
        ViewArgs { flame: true, .. } => flame::text(report),
        _ => functions::text(report),
    };
    let used: String = usage::lines(report.view).into_iter().map(|line| line + "\n").collect();
    Text::from(heading(report.view) + &used) + "\n" + body
}

fn json_of(report: &Report<'_>) -> Value {
    let (name, members) = match report.args.view {
        ViewArgs { tree: true, .. } => ("tree", tree::json(report, false)),
        ViewArgs { inverted: true, .. } => ("inverted", tree::json(report, true)),
        ViewArgs { lines: true, .. } => ("lines", lines::json(report)),
        ViewArgs { libs: true, .. } => ("libs", libs::json(report)),
        ViewArgs { threads: true, .. } => ("threads", threads::json(report)),
        ViewArgs { processes: true, .. } => ("processes", processes::json(report)),
        ViewArgs { markers: true, .. } => ("markers", markers::json(report)),
        ViewArgs { waits: true, .. } => ("waits", waits::json(report)),
        _ => ("functions", functions::json(report)),
    };
    let mut json = summary_json(report.view);
    json["schema"] = json!("nyquist-report/1");
    json["view"] = json!(name);
    json["counters"] = usage::json(report.view);
    heading::add_members(&mut json, members);
    json
}
