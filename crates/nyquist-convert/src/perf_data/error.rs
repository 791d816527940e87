//! Why a recording cannot be converted.

/// Why a recording cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No event has one of the requested names.
    #[error("the recording has no event named {requested}")]
    NoSuchEvent {
        /// The name.
        requested: String,
        /// The names of the recording's events.
        there: Vec<String>,
    },
    /// Samples of two events with different units would be added up.
    #[error("{first} and {other} count different things, and one profile shows one of them")]
    DifferentMeasures {
        /// One of the events.
        first: String,
        /// The other one.
        other: String,
    },
}
