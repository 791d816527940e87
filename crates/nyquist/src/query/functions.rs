//! Queries about functions and their lines.

use super::answer::{Answer, Rows};
use super::context::{QueryContext, milliseconds};
use super::waits;
use crate::annotate::{HotLine, folded, hot_lines};
use crate::failure::Failure;
use crate::functions::{Choice, choose};
use crate::number::time_span;
use crate::selection::pattern;
use nyquist_analysis::{CodeSelection, Function, LineAmounts, Neighbour, SampleState};
use nyquist_profile::{FuncId, Unit};
use serde_json::{Value, json};

/// The columns of functions for times, and for amounts in other units.
const TIMES: &[&str] = &["handle", "self_share", "self_ms", "total_share", "total_ms", "lib", "function"];
const AMOUNTS: &[&str] = &["handle", "self_share", "self", "total_share", "total", "lib", "function"];

/// The number of functions and threads in a summary.
const SUMMARY_ROWS: usize = 10;

/// A description of the profile.
pub(super) fn summary(context: &QueryContext<'_>) -> Answer {
    let (summary, measure) = (context.view.summary(), &context.view.profile().meta().measure);
    let mut answer = Answer::default();
    answer.fact("profile", context.view.profile().meta().product.as_str());
    answer.fact("command", context.view.profile().meta().arguments.as_deref());
    answer.fact("duration_ms", milliseconds(summary.duration_ns));
    let ran = context.view.selection().state != SampleState::OffCpu;
    answer.fact("measure", if ran { measure.name.as_str() } else { "waiting" });
    answer.fact(context.total_name(), context.amount(summary.total.weight));
    answer.fact("samples", summary.samples);
    answer.fact("lost_samples", summary.lost_samples);
    answer.fact("process_count", summary.processes);
    if ran && summary.has_kernel_share(measure) {
        answer.fact("user_share", context.share(summary.user.weight));
        answer.fact("kernel_share", context.share(summary.kernel.weight));
    }
    if ran && measure.is_cpu_time() {
        answer.fact("not_sampled_share", context.share(summary.not_sampled.weight));
    }
    answer.fact("truncated_share", context.share(summary.truncated.weight));
    let functions = context.view.functions().functions;
    let limit = context.limit.min(SUMMARY_ROWS);
    answer.rows(Rows::new("functions", context.columns(TIMES, AMOUNTS), limit, &functions, |it| {
        function_row(context, it)
    }));
    answer.rows(super::tables::thread_rows(context, limit));
    if let Some(hottest) = functions.first() {
        let handle = handle(hottest.func);
        answer.next = ["source", "function"].map(|question| context.next(&[question, &handle])).to_vec();
    }
    answer.next.push(context.next(&["tree"]));
    answer.notes.extend(context.view.impossible_time(&summary).map(|time| time.sentence(time_span)));
    let waits = waits::in_summary(context, &mut answer);
    answer.next.extend(waits);
    answer
}

/// The functions, or those that match.
pub(super) fn functions(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut functions = context.view.functions().functions;
    if let Some(text) = context.target() {
        let pattern = pattern(text)?;
        functions.retain(|function| pattern.matches(function.name));
        if functions.is_empty() {
            return Err(Failure::new(format!("no function with samples matches `{text}`")));
        }
    }
    let mut answer = Answer::default();
    answer.rows(Rows::new("functions", context.columns(TIMES, AMOUNTS), context.limit, &functions, |it| {
        function_row(context, it)
    }));
    Ok(answer)
}

fn handle(func: FuncId) -> String {
    format!("f-{}", func.index())
}

fn function_row(context: &QueryContext<'_>, function: &Function<'_>) -> Vec<Value> {
    vec![
        json!(handle(function.func)),
        context.share(function.self_amount.weight),
        context.amount(function.self_amount.weight),
        context.share(function.total.weight),
        context.amount(function.total.weight),
        json!(function.lib),
        json!(context.names.show(function.name)),
    ]
}

/// The requested function. A note names other candidates.
pub(super) fn chosen<'a>(context: &QueryContext<'a>, answer: &mut Answer) -> Result<Choice<'a>, Failure> {
    let choice = choose(context.view, context.target().unwrap_or_default())?;
    let function = context.view.function(choice.first());
    answer.fact("handle", handle(function.func));
    answer.fact("function", context.names.show(function.name));
    answer.fact("lib", function.lib);
    answer.notes.extend(choice.others(context.names));
    Ok(choice)
}

/// A function with its callers and callees.
pub(super) fn function(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let choice = chosen(context, &mut answer)?;
    let peek = context.view.peek(choice.first());
    answer.fact("file", peek.function.file);
    answer.fact("self_share", context.share(peek.function.self_amount.weight));
    let [own, total] =
        if context.scale.unit == Unit::Time { ["self_ms", "total_ms"] } else { ["self", "total"] };
    answer.fact(own, context.amount(peek.function.self_amount.weight));
    answer.fact("total_share", context.share(peek.function.total.weight));
    answer.fact(total, context.amount(peek.function.total.weight));
    let columns = context.columns(
        &["handle", "total_share", "total_ms", "lib", "function"],
        &["handle", "total_share", "total", "lib", "function"],
    );
    let row = |neighbour: &Neighbour<'_>| {
        vec![
            json!(neighbour.func.map(handle)),
            context.share(neighbour.total.weight),
            context.amount(neighbour.total.weight),
            json!(neighbour.lib),
            json!(neighbour.name.map_or_else(|| "(root)".to_owned(), |name| context.names.show(name))),
        ]
    };
    answer.rows(Rows::new("callers", columns, context.limit, &peek.callers, row));
    answer.rows(Rows::new("callees", columns, context.limit, &peek.callees, row));
    answer.notes.extend(folded(context.view, choice.funcs(), &context.args.read.symbols));
    let handle = handle(choice.first());
    answer.next = ["source", "callers", "tree"].map(|question| context.next(&[question, &handle])).to_vec();
    Ok(answer)
}

/// The hottest lines of the whole profile or of a function.
pub(super) fn lines(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let code = match context.target() {
        Some(_) => CodeSelection::Function(chosen(context, &mut answer)?.first()),
        None => CodeSelection::All,
    };
    let mut lines = context.view.lines(code);
    lines.retain(|line| line.line.is_some());
    let row = |line: &LineAmounts<'_>| {
        vec![
            context.share(line.self_amount.weight),
            context.share(line.total.weight),
            json!(line.line),
            json!(line.file),
        ]
    };
    answer.rows(Rows::new(
        "lines",
        &["self_share", "total_share", "line", "file"],
        context.limit,
        &lines,
        row,
    ));
    Ok(answer)
}

/// The hottest lines of a function and of the functions inlined into it, with their text.
pub(super) fn source(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let choice = chosen(context, &mut answer)?;
    let (lines, notes) = hot_lines(context.view, choice.funcs(), &context.args.read.symbols);
    let row = |line: &HotLine| {
        vec![
            context.share(line.own),
            context.share(line.total),
            json!(format!("{}:{}", line.file, line.line)),
            json!(line.text),
        ]
    };
    answer.rows(Rows::new(
        "lines",
        &["self_share", "total_share", "place", "source"],
        context.limit,
        &lines,
        row,
    ));
    answer.notes.extend(notes);
    answer.notes.extend(folded(context.view, choice.funcs(), &context.args.read.symbols));
    let handle = handle(choice.first());
    answer.next = vec![context.annotate(&handle)];
    Ok(answer)
}
