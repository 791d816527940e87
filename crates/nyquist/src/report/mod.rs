//! `nyquist report`: the time by one of nine criteria, as text or JSON.

mod answer;
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
use answer::print_answer;
use context::Report;
use nyquist_analysis::{Index, SampleState, View};
use serde_json::json;

pub(crate) use heading::{heading, kind, shares};
pub(crate) use tree::{TreeOptions, tree_nodes};

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
    let printed = if args.format.json { print_json(&report) } else { page::print(text_of(&report)) };
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

fn print_json(report: &Report<'_>) -> Result<(), Failure> {
    let view = report.view;
    match report.args.view {
        ViewArgs { tree: true, .. } => print_answer(view, "tree", tree::answer(report, false)),
        ViewArgs { inverted: true, .. } => print_answer(view, "inverted", tree::answer(report, true)),
        ViewArgs { lines: true, .. } => print_answer(view, "lines", lines::list(report)),
        ViewArgs { libs: true, .. } => print_answer(view, "libs", libs::list(report)),
        ViewArgs { threads: true, .. } => {
            print_answer(view, "threads", json!({ "threads": threads::list(report) }))
        }
        ViewArgs { processes: true, .. } => {
            print_answer(view, "processes", json!({ "processes": processes::list(report) }))
        }
        ViewArgs { markers: true, .. } => print_answer(view, "markers", markers::list(report)),
        ViewArgs { waits: true, .. } => print_answer(view, "waits", waits::list(report)),
        _ => print_answer(view, "functions", functions::list(report)),
    }
}
