//! `nyquist query`: one query of a profile, one short answer, for scripts and agents.

mod answer;
mod cells;
mod context;
mod functions;
mod tables;
mod tree;
mod waits;

use crate::args::{QueryArgs, Question};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::Screen;
use crate::{input, page, selection, shell};
use answer::Answer;
use context::QueryContext;
use nyquist_analysis::schema::Rows;
use nyquist_analysis::{Index, SampleState, View};

/// The page for language models on how to query a profile.
const GUIDE: &str = include_str!("guide.txt");

/// Prints the guide.
pub(crate) fn guide() -> Result<(), Failure> {
    page::print(GUIDE)
}

/// Runs the subcommand.
pub(crate) fn run(args: &QueryArgs) -> Result<(), Failure> {
    check(args)?;
    let read =
        input::read(&args.file, &args.read.filter, &args.read.symbols, Printer::new(args.read.verbosity));
    let mut profile = read.map_err(|failure| match in_order(args) {
        Some(hint) => failure.hint(hint),
        None => failure,
    })?;
    selection::split(&mut profile, &args.read.filter);
    let mut selected = selection::select(&profile, &args.read.filter)?;
    if args.question == Question::Waits {
        selected.state = SampleState::OffCpu;
    }
    let index = Index::new(&profile);
    let view = View::new(&index, &selected);
    if view.is_empty() && !matches!(args.question, Question::Markers | Question::Waits) {
        return Err(selection::nothing_selected(&view, &args.read.filter));
    }
    let context = QueryContext {
        args,
        index: &index,
        view: &view,
        rows: Rows::of(&view).with_names(args.format.names().form()),
        scale: Scale::of(&view),
        names: args.format.names(),
        limit: args.limit as usize,
    };
    let answer = answer_to(&context)?;
    if args.format.json {
        page::print_json(&answer.json(args.question.name()))
    } else {
        // The reader is usually a program, so nothing is cut and there are no colours.
        page::print(answer.text(Screen { width: None, colour: false, unicode: true }))
    }
}

/// The intended command, if a question is where the profile's name should be.
fn in_order(args: &QueryArgs) -> Option<String> {
    let question = Question::named(args.file.to_str()?).filter(|_| !args.file.exists())?;
    Some(format!(
        "the profile comes first: `{}`",
        shell::nyquist(["query", "profile.json.gz", question.name()])
    ))
}

fn check(args: &QueryArgs) -> Result<(), Failure> {
    let name = args.question.name();
    match &args.target {
        None if args.question.needs_function() => {
            Err(Failure::new(format!("`{name}` needs a function: its handle (f-123) or name"))
                .hint(context::next(args, &["functions"])))
        }
        Some(target) if !args.question.takes_target() => Err(Failure::new(format!(
            "`{name}` is about the whole profile, so `{target}` cannot be used with it"
        ))),
        _ => Ok(()),
    }
}

fn answer_to(context: &QueryContext<'_>) -> Result<Answer, Failure> {
    match context.args.question {
        Question::Summary => Ok(functions::summary(context)),
        Question::Functions => functions::functions(context),
        Question::Function => functions::function(context),
        Question::Tree => tree::tree(context),
        Question::Callers => tree::callers(context),
        Question::Lines => functions::lines(context),
        Question::Source => functions::source(context),
        Question::Threads => Ok(tables::threads(context)),
        Question::Libs => Ok(tables::libs(context)),
        Question::Markers => Ok(tables::markers(context)),
        Question::Waits => Ok(waits::waits(context)),
        Question::Timeline => Ok(tables::timeline(context)),
    }
}
