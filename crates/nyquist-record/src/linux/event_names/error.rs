//! An error in the name of an event, with its position in the text.

use std::fmt;
use std::ops::Range;

/// A name that matches no event of this machine. Displays as one sentence; [`EventNameError::hints`] show the
/// position and give advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNameError {
    /// The whole text.
    pub text: String,
    /// The range of invalid bytes in the text, on character boundaries.
    pub at: Range<usize>,
    /// The error in this range, without a full stop.
    pub reason: String,
    /// Similar names, nearest first.
    pub similar: Vec<String>,
    /// Further advice.
    pub advice: Option<String>,
}

impl EventNameError {
    pub(super) fn new(text: &str, at: Range<usize>, reason: impl Into<String>) -> Self {
        Self { text: text.to_owned(), at, reason: reason.into(), similar: Vec::new(), advice: None }
    }

    pub(super) fn similar(self, similar: Vec<String>) -> Self {
        Self { similar, ..self }
    }

    pub(super) fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// Lines of advice: the position, marked below the text, unless it is the whole text; the nearest names;
    /// further advice.
    pub fn hints(&self) -> Vec<String> {
        let place = (self.at != (0..self.text.len())).then(|| self.marked());
        let similar = (!self.similar.is_empty()).then(|| format!("similar: {}", self.similar.join(", ")));
        place.into_iter().chain(similar).chain(self.advice.clone()).collect()
    }

    /// The text, with marks below the invalid part. The marks are aligned for a text that begins at column 6,
    /// as after `hint: `.
    fn marked(&self) -> String {
        let count = |text: &str| text.chars().count();
        let before = count(self.text.get(..self.at.start).unwrap_or_default());
        let marks = count(self.text.get(self.at.clone()).unwrap_or_default()).max(1);
        format!("{}\n      {}{}", self.text, " ".repeat(before), "^".repeat(marks))
    }
}

impl fmt::Display for EventNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self.text.get(self.at.clone()).unwrap_or_default();
        let shown = if wrong.is_empty() { &self.text } else { wrong };
        write!(f, "event `{shown}`: {}", self.reason)
    }
}

impl std::error::Error for EventNameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_marked() {
        let error = EventNameError::new("cs,cyclse:u", 3..9, "no such event").similar(vec!["cycles".into()]);
        assert_eq!(error.to_string(), "event `cyclse`: no such event");
        assert_eq!(error.hints(), ["cs,cyclse:u\n         ^^^^^^", "similar: cycles"]);
        let at_the_end = EventNameError::new("cs,", 3..3, "a name is missing");
        assert_eq!(at_the_end.to_string(), "event `cs,`: a name is missing");
        assert_eq!(at_the_end.hints(), ["cs,\n         ^"]);
        assert!(EventNameError::new("x", 0..1, "no such event").hints().is_empty());
    }
}
