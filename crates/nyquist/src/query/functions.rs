//! Queries about functions and their lines.

use super::answer::Answer;
use super::context::QueryContext;
use super::waits;
use crate::annotate::{HotLine, folded, hot_lines};
use crate::failure::Failure;
use crate::functions::{Choice, choose};
use crate::number::time_span;
use crate::selection::pattern;
use nyquist_analysis::schema::{List, SourceLineRow, Summary};
use nyquist_analysis::{CodeSelection, Function, SampleState};
use std::borrow::Cow;

/// The columns of functions for times, and for amounts in other units.
const TIMES: &[&str] = &["handle", "self_share", "self_ms", "total_share", "total_ms", "lib", "function"];
const AMOUNTS: &[&str] = &["handle", "self_share", "self", "total_share", "total", "lib", "function"];

/// The number of functions and threads in a summary.
const SUMMARY_ROWS: usize = 10;

/// A description of the profile.
pub(super) fn summary(context: &QueryContext<'_>) -> Answer {
    let (summary, measure) = (context.view.summary(), &context.view.profile().meta().measure);
    let mut answer = Answer::default();
    answer.add(&Summary::of(context.view));
    answer.facts(&["profile"]);
    answer.fact("command", context.view.profile().meta().arguments.as_deref());
    answer.facts(&["duration_ms", "measure"]);
    let ran = context.view.selection().state != SampleState::OffCpu;
    answer.fact(context.total_name(), context.amount(summary.total.weight));
    answer.facts(&["samples", "lost_samples", "process_count"]);
    let share = |weight| context.rows.whole().share(weight);
    if ran && summary.has_kernel_share(measure) {
        answer.fact("user_share", share(summary.user.weight));
        answer.fact("kernel_share", share(summary.kernel.weight));
    }
    if ran && measure.is_cpu_time() {
        answer.fact("not_sampled_share", share(summary.not_sampled.weight));
    }
    answer.fact("truncated_share", share(summary.truncated.weight));
    let functions = context.view.functions().functions;
    let limit = context.limit.min(SUMMARY_ROWS);
    add_functions(context, &mut answer, limit, &functions);
    super::tables::add_threads(context, &mut answer, limit);
    if let Some(hottest) = functions.first() {
        let handle = context.rows.handle(hottest.func);
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
    let mut answer = context.answer();
    add_functions(context, &mut answer, context.limit, &functions);
    Ok(answer)
}

fn add_functions(context: &QueryContext<'_>, answer: &mut Answer, limit: usize, functions: &[Function<'_>]) {
    let list =
        List::new("function", "functions", limit, functions, |function| context.rows.function(function));
    answer.list(&list, context.columns(TIMES, AMOUNTS));
}

/// The requested function. A note names other candidates.
pub(super) fn chosen<'a>(context: &QueryContext<'a>, answer: &mut Answer) -> Result<Choice<'a>, Failure> {
    let choice = choose(context.view, context.target().unwrap_or_default())?;
    let function = context.view.function(choice.first());
    answer.fact("handle", context.rows.handle(function.func));
    answer.fact("function", context.names.show(function.name));
    answer.fact("lib", function.lib);
    answer.notes.extend(choice.others(context.names));
    Ok(choice)
}

/// A function with its callers and callees.
pub(super) fn function(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = context.answer();
    let choice = chosen(context, &mut answer)?;
    let details = context.rows.details(&context.view.peek(choice.first()), context.limit);
    let handle = details.function.handle.clone();
    answer.add(&details.function);
    answer.facts(context.columns(
        &["file", "self_share", "self_ms", "total_share", "total_ms"],
        &["file", "self_share", "self", "total_share", "total"],
    ));
    let columns = context.columns(
        &["handle", "total_share", "total_ms", "lib", "function"],
        &["handle", "total_share", "total", "lib", "function"],
    );
    answer.list(&details.callers, columns);
    answer.list(&details.callees, columns);
    answer.notes.extend(folded(context.view, choice.funcs(), &context.args.read.symbols));
    answer.next = ["source", "callers", "tree"].map(|question| context.next(&[question, &handle])).to_vec();
    Ok(answer)
}

/// The hottest lines of the whole profile or of a function.
pub(super) fn lines(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = context.answer();
    let code = match context.target() {
        Some(_) => CodeSelection::Function(chosen(context, &mut answer)?.first()),
        None => CodeSelection::All,
    };
    let mut lines = context.view.lines(code);
    lines.retain(|line| line.line.is_some());
    let list = List::new("line", "lines", context.limit, &lines, |line| context.rows.line(line));
    answer.list(&list, &["self_share", "total_share", "line", "file"]);
    Ok(answer)
}

/// The hottest lines of a function and of the functions inlined into it, with their text.
pub(super) fn source(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = context.answer();
    let choice = chosen(context, &mut answer)?;
    let (lines, notes) = hot_lines(context.view, choice.funcs(), &context.args.read.symbols);
    let row = |line: &HotLine| SourceLineRow {
        file: Cow::Owned(line.file.clone()),
        line: line.line,
        source: line.text.clone().map(Cow::Owned),
        amounts: context.rows.whole().amounts(line.own, line.total),
    };
    let list = List::new("line", "lines", context.limit, &lines, row);
    answer.list(&list, &["self_share", "total_share", "place", "source"]);
    answer.notes.extend(notes);
    answer.notes.extend(folded(context.view, choice.funcs(), &context.args.read.symbols));
    let handle = context.rows.handle(choice.first());
    answer.next = vec![context.annotate(&handle)];
    Ok(answer)
}
