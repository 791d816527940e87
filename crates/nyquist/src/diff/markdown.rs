//! A comparison as Markdown, for a comment on a change.

use super::amounts::{ValueForm, relative};
use super::compared::Compared;
use super::text::{heading, with_time};
use crate::args::DiffArgs;
use crate::text::{Names, Text, one_line};
use nyquist_analysis::FunctionDiff;

/// The heading, the verdict and a table of what differs by more than noise.
pub(super) fn of(compared: &Compared<'_, '_>, args: &DiffArgs) -> Text {
    let Compared { diff, measure, .. } = *compared;
    let mut text = String::new();
    if let Some(name) = compared.name {
        text.extend(["### ", &code(name), "\n\n"]);
    }
    text.extend([&*heading(diff, measure), "\n"]);
    if let Some(verdict) = &compared.verdict {
        let failure = verdict.failure(args.format.names()).map(|failure| escaped(&failure));
        let verdict = failure.as_deref().unwrap_or("Nothing is slower than accepted.");
        text.extend(["**", verdict, "**\n\n"]);
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let shown: Vec<_> = with_time(diff).filter(|it| args.all || !it.self_time.is_noise).take(limit).collect();
    if shown.is_empty() {
        return Text::from(text + "No function differs by more than noise.\n");
    }
    text += "| change | | ± | before | after | function |\n|---:|---:|---:|---:|---:|---|\n";
    let form = ValueForm::of(diff, measure);
    text.extend(shown.into_iter().map(|function| row(form, function, args.format.names())));
    Text::from(text)
}

fn row(form: ValueForm, function: &FunctionDiff<'_>, names: Names) -> String {
    let own = &function.self_time;
    format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        relative(own),
        form.change(own.change),
        form.value(own.margin),
        form.value(own.before),
        form.value(own.after),
        code(&names.show(&function.name)),
    )
}

/// A text as code in a table, whatever it has in it.
fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\\|");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}

/// A text whose letters have no meaning in Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in one_line(text).chars() {
        if "\\`*_{}[]<>#|~&!".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_code_whatever_they_have() {
        assert_eq!(code("a<b>"), "`a<b>`");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "`` a`b ``");
    }

    #[test]
    fn a_sentence_has_no_markup() {
        assert_eq!(escaped("<T as *const _>::f"), r"\<T as \*const \_\>::f");
    }
}
