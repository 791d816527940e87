//! Why a text names no place in a program.

/// Why a text names no place in a program: a sentence without its subject.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlaceError {
    pub(super) reason: String,
    /// Similar names in the program, nearest first.
    pub(super) similar: Vec<String>,
    /// Further advice.
    pub(super) advice: Option<String>,
}

impl From<String> for PlaceError {
    fn from(reason: String) -> Self {
        Self { reason, ..Self::default() }
    }
}
