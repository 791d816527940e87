//! What a thread waits for, by the functions on its stack.

use super::function_name::FunctionName;
use super::row::{Meaning, Row};
use super::table::{LIBS_OF_RUNTIMES, ROWS, THROUGH};
use crate::event::WaitReason;

/// The most functions of one stack that are asked. The functions of runtimes are near its innermost end.
pub(super) const MAX_FUNCTIONS: usize = 64;

/// What is known of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A thread waits for this kind of thing.
    Reason(WaitReason),
    /// A worker of this runtime has nothing to do.
    Idle(&'static str),
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) answer: Answer,
    /// Whether it is a lock whose memory has the thread that holds it, as the recorder reads it.
    pub(super) has_owner: bool,
}

/// What a function says about a wait in a function that it has called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clue {
    /// It is of a runtime, and has a meaning.
    Row(&'static Row),
    /// It is of a runtime, and its caller may say more.
    Through,
    /// It is code of users, or not known: its callers say nothing about the wait.
    End,
}

/// What a function says, given its name and its lib's; the name is empty if it is not known.
pub(super) fn clue(name: &str, lib: &str) -> Clue {
    // The names of the kernel and of its modules are in brackets.
    if lib.starts_with('[') {
        return Clue::Through;
    }
    let parsed = FunctionName::parse(name);
    if let Some(row) = ROWS.iter().find(|row| row.is_of(&parsed)) {
        return Clue::Row(row);
    }
    let is_of_runtime = LIBS_OF_RUNTIMES.iter().any(|beginning| lib.starts_with(beginning));
    let is_known = THROUGH.iter().any(|function| function.matches(&parsed));
    if is_of_runtime || is_known { Clue::Through } else { Clue::End }
}

/// What a thread waits for. `first` is what its system call says: a futex, events, a time. The innermost
/// function that knows better decides, and then functions that call it from within the same runtime. A
/// contended lock remains one, whoever calls it.
pub(super) fn search(first: WaitReason, functions: impl Iterator<Item = Clue>) -> Option<Found> {
    let mut found: Option<(&'static Row, Found)> = None;
    for clue in functions.take(MAX_FUNCTIONS) {
        let row = match clue {
            Clue::Row(row) => row,
            Clue::Through => continue,
            Clue::End => break,
        };
        if !row.may_follow(found.map(|(row, _)| row)) {
            break;
        }
        let answer = match row.meaning_for(first) {
            Meaning::Through => continue,
            Meaning::Reason(reason) => Answer::Reason(reason),
            Meaning::Idle(runtime) => Answer::Idle(runtime),
        };
        found = Some((row, Found { answer, has_owner: row.has_owner }));
        if row.is_final() {
            break;
        }
    }
    found.map(|(_, found)| found)
}
