//! Errors that several requests share.

use std::fmt;

use nyquist_server::ViewerError;

/// A parameter is invalid, or names something that does not exist.
pub(crate) fn bad_request(message: impl fmt::Display) -> ViewerError {
    ViewerError { status: 400, message: message.to_string() }
}

/// The request does not exist.
pub(crate) fn unknown_question(question: &str) -> ViewerError {
    ViewerError { status: 404, message: format!("there is no question {question}") }
}

/// An internal error.
pub(crate) fn internal() -> ViewerError {
    ViewerError { status: 500, message: "the viewer failed; please report this".to_owned() }
}
