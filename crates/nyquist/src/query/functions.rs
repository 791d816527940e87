//! Queries about functions and their lines.

use super::answer::{Answer, Rows};
use super::context::{QueryContext, milliseconds};
use crate::annotate::{HotLine, hot_lines};
use crate::failure::Failure;
use crate::functions::{Choice, choose};
use crate::selection::pattern;
use nyquist_analysis::{Code, Function, Line, Neighbour};
use nyquist_profile::FuncId;
use serde_json::{Value, json};

const FUNCTION: &[&str] = &["handle", "self_share", "self_ms", "total_share", "total_ms", "lib", "function"];

/// The number of functions and threads in a summary.
const SUMMARY_ROWS: usize = 10;

/// A description of the profile.
pub(super) fn summary(asked: &QueryContext<'_>) -> Answer {
    let summary = asked.view.summary();
    let mut answer = Answer::default();
    answer.fact("profile", asked.view.profile().meta().product.as_str());
    answer.fact("command", asked.view.profile().meta().arguments.as_deref());
    answer.fact("duration_ms", milliseconds(summary.duration_ns));
    answer.fact("cpu_ms", asked.ms(summary.total.weight));
    answer.fact("samples", summary.samples);
    answer.fact("lost_samples", summary.lost_samples);
    answer.fact("process_count", summary.processes);
    answer.fact("user_share", asked.share(summary.user.weight));
    answer.fact("kernel_share", asked.share(summary.kernel.weight));
    answer.fact("not_sampled_share", asked.share(summary.not_sampled.weight));
    answer.fact("truncated_share", asked.share(summary.truncated.weight));
    let functions = asked.view.functions().functions;
    let limit = asked.limit.min(SUMMARY_ROWS);
    answer.rows(Rows::new("functions", FUNCTION, limit, &functions, |it| function_row(asked, it)));
    answer.rows(super::tables::thread_rows(asked, limit));
    if let Some(hottest) = functions.first() {
        let handle = handle(hottest.func);
        answer.next =
            ["source", "function"].map(|question| asked.next(&format!("{question} {handle}"))).to_vec();
    }
    answer.next.push(asked.next("tree"));
    answer
}

/// The functions, or those that match.
pub(super) fn functions(asked: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut functions = asked.view.functions().functions;
    if let Some(text) = asked.target() {
        let pattern = pattern(text)?;
        functions.retain(|function| pattern.matches(function.name));
        if functions.is_empty() {
            return Err(Failure::new(format!("no function with samples matches `{text}`")));
        }
    }
    let mut answer = Answer::default();
    answer.rows(Rows::new("functions", FUNCTION, asked.limit, &functions, |it| function_row(asked, it)));
    Ok(answer)
}

fn handle(func: FuncId) -> String {
    format!("f-{}", func.index())
}

fn function_row(asked: &QueryContext<'_>, function: &Function<'_>) -> Vec<Value> {
    vec![
        json!(handle(function.func)),
        asked.share(function.self_amount.weight),
        asked.ms(function.self_amount.weight),
        asked.share(function.total.weight),
        asked.ms(function.total.weight),
        json!(function.lib),
        json!(asked.names.show(function.name)),
    ]
}

/// The requested function. A note names other candidates.
pub(super) fn chosen<'a>(asked: &QueryContext<'a>, answer: &mut Answer) -> Result<Choice<'a>, Failure> {
    let choice = choose(asked.view, asked.target().unwrap_or_default())?;
    let function = asked.view.function(choice.first());
    answer.fact("handle", handle(function.func));
    answer.fact("function", asked.names.show(function.name));
    answer.fact("lib", function.lib);
    answer.notes.extend(choice.others(asked.names));
    Ok(choice)
}

/// A function with its callers and callees.
pub(super) fn function(asked: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let choice = chosen(asked, &mut answer)?;
    let peek = asked.view.peek(choice.first());
    answer.fact("file", peek.function.file);
    answer.fact("self_share", asked.share(peek.function.self_amount.weight));
    answer.fact("self_ms", asked.ms(peek.function.self_amount.weight));
    answer.fact("total_share", asked.share(peek.function.total.weight));
    answer.fact("total_ms", asked.ms(peek.function.total.weight));
    let columns = &["handle", "total_share", "total_ms", "lib", "function"];
    let row = |neighbour: &Neighbour<'_>| {
        vec![
            json!(neighbour.func.map(handle)),
            asked.share(neighbour.total.weight),
            asked.ms(neighbour.total.weight),
            json!(neighbour.lib),
            json!(neighbour.name.map_or_else(|| "(root)".to_owned(), |name| asked.names.show(name))),
        ]
    };
    answer.rows(Rows::new("callers", columns, asked.limit, &peek.callers, row));
    answer.rows(Rows::new("callees", columns, asked.limit, &peek.callees, row));
    let handle = handle(choice.first());
    answer.next = ["source", "callers", "tree"].map(|next| asked.next(&format!("{next} {handle}"))).to_vec();
    Ok(answer)
}

/// The hottest lines of the whole profile or of a function.
pub(super) fn lines(asked: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let code = match asked.target() {
        Some(_) => Code::Function(chosen(asked, &mut answer)?.first()),
        None => Code::All,
    };
    let mut lines = asked.view.lines(code);
    lines.retain(|line| line.line.is_some());
    let row = |line: &Line<'_>| {
        vec![
            asked.share(line.self_amount.weight),
            asked.share(line.total.weight),
            json!(line.line),
            json!(line.file),
        ]
    };
    answer.rows(Rows::new("lines", &["self_share", "total_share", "line", "file"], asked.limit, &lines, row));
    Ok(answer)
}

/// The hottest lines of a function and of the functions inlined into it, with their text.
pub(super) fn source(asked: &QueryContext<'_>) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let choice = chosen(asked, &mut answer)?;
    let (lines, notes) = hot_lines(asked.view, choice.funcs(), &asked.args.read.symbols);
    let row = |line: &HotLine| {
        vec![
            asked.share(line.own),
            asked.share(line.total),
            json!(format!("{}:{}", line.file, line.line)),
            json!(line.text),
        ]
    };
    answer.rows(Rows::new(
        "lines",
        &["self_share", "total_share", "place", "source"],
        asked.limit,
        &lines,
        row,
    ));
    answer.notes.extend(notes);
    let handle = handle(choice.first());
    answer.next = vec![format!("nyquist annotate {handle} {} --json", asked.args.file.display())];
    Ok(answer)
}
