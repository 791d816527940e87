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
}
