//! Why a recording cannot be converted.

/// Why a recording cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// No event has one of the names that were asked for.
    #[error("the recording has no event named {wanted}")]
    NoSuchEvent {
        /// The name.
        wanted: String,
        /// The names that there are.
        there: Vec<String>,
    },
    /// Samples of two events would be added up that do not count the same.
    #[error("{first} and {other} count different things, and one profile shows one of them")]
    DifferentMeasures {
        /// One of the events.
        first: String,
        /// The other one.
        other: String,
    },
}
