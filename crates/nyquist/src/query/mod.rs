//! `nyquist query`: one question to a profile, one short answer, for scripts and agents.

mod answer;
mod functions;
mod tables;
mod tree;

use crate::args::{QueryArgs, Question};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::{Names, Screen};
use crate::{input, page, selection};
use answer::Answer;
use nyquist_analysis::{Index, View};
use serde_json::{Value, json};

/// The page that tells a language model how to ask.
const GUIDE: &str = include_str!("guide.txt");

/// Prints the guide.
pub(crate) fn guide() -> Result<(), Failure> {
    page::print(GUIDE)
}

/// A question with what it is asked of.
struct Asked<'a> {
    args: &'a QueryArgs,
    index: &'a Index<'a>,
    view: &'a View<'a>,
    scale: Scale,
    names: Names,
    limit: usize,
}

/// Runs the subcommand.
pub(crate) fn run(args: &QueryArgs) -> Result<(), Failure> {
    check(args)?;
    let mut profile = input::read(&args.file, &args.symbols, Printer::new(args.verbosity))?;
    selection::split(&mut profile, &args.filter);
    let selected = selection::select(&profile, &args.filter)?;
    let index = Index::new(&profile);
    let view = View::new(&index, &selected);
    if view.is_empty() && args.question != Question::Markers {
        return Err(selection::nothing_selected(&view, &args.filter));
    }
    let asked = Asked {
        args,
        index: &index,
        view: &view,
        scale: Scale::of(&view),
        names: args.format.names(),
        limit: args.limit as usize,
    };
    let answer = asked.answer()?;
    if args.format.json {
        page::print_json(&answer.json(args.question.name()))
    } else {
        // Whoever reads this is mostly no person: nothing is cut, and there are no colours.
        page::print(answer.text(Screen { width: None, colour: false, unicode: true }))
    }
}

fn check(args: &QueryArgs) -> Result<(), Failure> {
    let name = args.question.name();
    match &args.target {
        None if args.question.needs_function() => {
            Err(Failure::new(format!("`{name}` needs a function: its handle (f-123) or name"))
                .hint(format!("nyquist query {} functions", args.file.display())))
        }
        Some(target) if !args.question.takes_target() => Err(Failure::new(format!(
            "`{name}` is about the whole profile: `{target}` has no meaning for it"
        ))),
        _ => Ok(()),
    }
}

impl<'a> Asked<'a> {
    fn answer(&self) -> Result<Answer, Failure> {
        match self.args.question {
            Question::Summary => Ok(functions::summary(self)),
            Question::Functions => functions::functions(self),
            Question::Function => functions::function(self),
            Question::Tree => tree::tree(self),
            Question::Callers => tree::callers(self),
            Question::Lines => functions::lines(self),
            Question::Source => functions::source(self),
            Question::Threads => Ok(tables::threads(self)),
            Question::Libs => Ok(tables::libs(self)),
            Question::Markers => Ok(tables::markers(self)),
            Question::Timeline => Ok(tables::timeline(self)),
        }
    }

    /// What has been asked for by name or handle.
    fn target(&self) -> Option<&'a str> {
        self.args.target.as_deref()
    }

    /// A share, to a hundredth of a per cent.
    fn share(&self, weight: u64) -> Value {
        json!((self.scale.share(weight) * 1e4).round() / 1e4)
    }

    /// The time in ms.
    fn ms(&self, weight: u64) -> Value {
        milliseconds(weight.saturating_mul(self.scale.interval_ns))
    }

    /// A command that asks on.
    fn next(&self, question: &str) -> String {
        format!("nyquist query {} {question}", self.args.file.display())
    }
}

/// A time in ms with three decimals.
fn milliseconds(nanoseconds: u64) -> Value {
    json!((nanoseconds as f64 / 1e3).round() / 1e3)
}
