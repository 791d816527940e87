//! The refusals that several questions share.

use std::fmt;

use nyquist_server::Refusal;

/// A parameter is invalid, or names something that does not exist.
pub(crate) fn bad_request(message: impl fmt::Display) -> Refusal {
    Refusal { status: 400, message: message.to_string() }
}

/// There is no such question.
pub(crate) fn unknown_question(question: &str) -> Refusal {
    Refusal { status: 404, message: format!("there is no question {question}") }
}

/// The fault is ours.
pub(crate) fn internal() -> Refusal {
    Refusal { status: 500, message: "the viewer failed; please report this".to_owned() }
}
