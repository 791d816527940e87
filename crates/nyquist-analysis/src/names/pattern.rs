//! Patterns to match names with: a part of the name, or a regular expression.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// The most bytes of a compiled pattern of the user's own.
const MAX_SIZE: usize = 10 << 20;

/// The most bytes of the tables that each thread makes while it matches.
const MAX_TABLES: usize = 2 << 20;

/// A pattern for names.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A regular expression does not parse.
    #[error("`{pattern}` is not a regular expression: {reason}{}", place(*.position))]
    Syntax {
        /// The regular expression.
        pattern: String,
        /// What is wrong.
        reason: String,
        /// The position in characters from the start; `None` if the whole is invalid.
        position: Option<usize>,
    },
    /// A pattern takes more memory than is allowed.
    #[error("`{pattern}` is too large to be compiled")]
    TooLarge {
        /// The pattern.
        pattern: String,
    },
}

impl PatternError {
    /// Where the pattern is wrong, in characters from its start.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Syntax { position, .. } => *position,
            Self::TooLarge { .. } => None,
        }
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        match self {
            Self::Syntax { pattern, .. } | Self::TooLarge { pattern } => pattern,
        }
    }
}

fn place(position: Option<usize>) -> String {
    position.map_or_else(String::new, |position| format!(" (at character {})", position + 1))
}

impl Pattern {
    /// Matches names that contain `text`, ignoring case.
    pub fn substring(text: &str) -> Result<Self, PatternError> {
        Self::substring_within(text, MAX_SIZE)
    }

    /// The same, if the compiled pattern takes at most that many bytes.
    pub fn substring_within(text: &str, bytes: usize) -> Result<Self, PatternError> {
        Self::build(text, RegexBuilder::new(&regex::escape(text)).case_insensitive(true), bytes)
    }

    /// Matches names in which the regular expression matches anywhere, in the syntax of the `regex` crate.
    pub fn regex(text: &str) -> Result<Self, PatternError> {
        Self::regex_within(text, MAX_SIZE)
    }

    /// The same, if the compiled expression takes at most that many bytes.
    pub fn regex_within(text: &str, bytes: usize) -> Result<Self, PatternError> {
        if let Err(error) = regex_syntax::parse(text) {
            return Err(syntax_error(text, &error));
        }
        Self::build(text, &mut RegexBuilder::new(text), bytes)
    }

    fn build(text: &str, builder: &mut RegexBuilder, bytes: usize) -> Result<Self, PatternError> {
        // The tables for matching are made when it is used, by each thread.
        builder.size_limit(bytes).dfa_size_limit(bytes.min(MAX_TABLES));
        let too_large = |_| PatternError::TooLarge { pattern: text.into() };
        Ok(Self { text: text.into(), regex: builder.build().map_err(too_large)? })
    }

    /// The source text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `name` matches. O(length).
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Pattern {}

fn syntax_error(text: &str, error: &regex_syntax::Error) -> PatternError {
    let (reason, offset) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(error.span().start.offset)),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), Some(error.span().start.offset)),
        other => (other.to_string(), None),
    };
    let position = offset.and_then(|offset| text.get(..offset)).map(|before| before.chars().count());
    PatternError::Syntax { pattern: text.into(), reason, position }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_substring_has_no_case_and_no_syntax() {
        let check = |text: &str, name: &str, expected| {
            assert_eq!(Pattern::substring(text).unwrap().matches(name), expected, "{text} {name}");
        };
        check("Parse", "my::parse_all", true);
        check("vec<", "Vec<u8>", true);
        check("a.c", "abc", false);
        check("", "anything", true);
    }

    #[test]
    fn a_regex_matches_anywhere_and_has_case() {
        let check = |text: &str, name: &str, expected| {
            assert_eq!(Pattern::regex(text).unwrap().matches(name), expected, "{text} {name}");
        };
        check("a.c", "xabcx", true);
        check("^b", "abc", false);
        check("Parse", "parse", false);
        check("(?i)Parse", "parse", true);
    }

    #[test]
    fn a_regex_that_does_not_parse_says_where() {
        let check = |text: &str, position, expected: &str| {
            let error = Pattern::regex(text).unwrap_err();
            assert_eq!((error.position(), error.to_string().as_str()), (position, expected));
        };
        check("ab(c", Some(2), "`ab(c` is not a regular expression: unclosed group (at character 3)");
        check("é[", Some(1), "`é[` is not a regular expression: unclosed character class (at character 2)");
        check(
            "*",
            Some(0),
            "`*` is not a regular expression: repetition operator missing expression (at character 1)",
        );
        check(
            r"\p{nope}",
            Some(0),
            r"`\p{nope}` is not a regular expression: Unicode property not found (at character 1)",
        );
    }

    #[test]
    fn a_pattern_that_takes_all_memory_is_refused() {
        let pattern = r"((\w{999}){999}){99}".to_owned();
        assert_eq!(Pattern::regex(&pattern), Err(PatternError::TooLarge { pattern }));
        let text = "é".repeat(10 << 20);
        let error = Pattern::substring(&text).unwrap_err();
        assert!(matches!(error, PatternError::TooLarge { .. }));
    }
}
