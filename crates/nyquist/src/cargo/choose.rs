//! Chooses one of several candidates: the only one, the one typed on the terminal, or an error with the list.

use super::calls::CARGO_FAILED;
use crate::failure::Failure;
use crate::printer;
use crate::text::one_line;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _};

/// A candidate.
pub(super) struct Candidate<T> {
    /// The text in the list.
    pub(super) label: String,
    /// The arguments that select it without a question.
    pub(super) argv: String,
    /// The item.
    pub(super) value: T,
}

/// The number of candidates that a list shows.
const MAX_CANDIDATES: usize = 30;

/// The only candidate, or the one that the user chooses.
pub(super) fn one<T>(mut candidates: Vec<Candidate<T>>, what: &str, none: &str) -> Result<T, Failure> {
    let Some(last) = candidates.pop() else {
        return Err(Failure::new(none).status(CARGO_FAILED));
    };
    if candidates.is_empty() {
        return Ok(last.value);
    }
    candidates.push(last);
    if !io::stdin().is_terminal() || !printer::is_terminal() {
        return Err(ambiguous(&candidates, what));
    }
    let number = ask(&candidates, what).filter(|number| (1..=candidates.len()).contains(number));
    match number {
        Some(number) => Ok(candidates.swap_remove(number - 1).value),
        None => Err(not_chosen(&candidates)),
    }
}

fn not_chosen<T>(candidates: &[Candidate<T>]) -> Failure {
    let example = candidates.first().map_or("", |first| &first.argv);
    Failure::new("nothing was chosen")
        .hint(format!("type a number from 1 to {}, or name one, such as: {example}", candidates.len()))
        .status(CARGO_FAILED)
}

fn ambiguous<T>(candidates: &[Candidate<T>], what: &str) -> Failure {
    let list =
        candidates.iter().take(MAX_CANDIDATES).map(|candidate| format!("\n  {}", one_line(&candidate.label)));
    let more = candidates.len().saturating_sub(MAX_CANDIDATES);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let message =
        format!("there are {} {what}s to choose from:{}{more}", candidates.len(), list.collect::<String>());
    let failure = Failure::new(message).status(CARGO_FAILED);
    match candidates.first() {
        Some(first) => failure.hint(format!("name one, such as: {}", first.argv)),
        None => failure,
    }
}

/// Shows the list on the terminal and reads a number; `None` if none was typed.
fn ask<T>(candidates: &[Candidate<T>], what: &str) -> Option<usize> {
    let mut text = String::new();
    for (index, candidate) in candidates.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>4}  {}", index + 1, one_line(&candidate.label));
    }
    printer::ask(format_args!("{text}Which {what}? ")).ok()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(count: usize) -> Vec<Candidate<usize>> {
        let candidate =
            |value| Candidate { label: format!("name{value}"), argv: format!("--bin name{value}"), value };
        (0..count).map(candidate).collect()
    }

    #[test]
    fn the_only_candidate_is_taken() {
        assert_eq!(one(candidates(1), "program", "none"), Ok(0));
        assert_eq!(one(candidates(0), "program", "none here").unwrap_err().message, "none here");
    }

    #[test]
    fn several_are_listed_with_the_words_for_one() {
        let failure = ambiguous(&candidates(2), "program");
        assert_eq!(failure.message, "there are 2 programs to choose from:\n  name0\n  name1");
        assert_eq!(failure.hints, ["name one, such as: --bin name0"]);
        assert!(ambiguous(&candidates(99), "program").message.ends_with("name29\n  and 69 more"));
    }
}
