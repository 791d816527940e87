//! The parameters of a request: the query of its URL.

use std::fmt::Display;
use std::str::FromStr;

use nyquist_analysis::Pattern;
use nyquist_server::ViewerError;

use crate::errors::bad_request;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the query of a URL.
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// All parameters, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a parameter that may be present once. An empty value counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(given, value)| *given == name && !value.is_empty()).map(|(_, value)| value)
    }

    /// Whether a flag is set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0")
    }

    /// A number, if it is present.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ViewerError> {
        self.get(name).map(|value| number(name, value)).transpose()
    }

    /// A whole number that is at most `most`, or `default`.
    pub(crate) fn at_most(&self, name: &str, default: usize, most: usize) -> Result<usize, ViewerError> {
        Ok(self.number(name)?.unwrap_or(default).min(most))
    }

    /// A mandatory number.
    pub(crate) fn required<T: FromStr>(&self, name: &str) -> Result<T, ViewerError> {
        self.number(name)?.ok_or_else(|| bad_request(format_args!("the parameter {name} is missing")))
    }

    /// Numbers divided by a separator; `None` if the parameter is missing.
    pub(crate) fn numbers(&self, name: &str, separator: char) -> Result<Option<Vec<usize>>, ViewerError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.split(separator).map(|one| number(name, one)).collect::<Result<_, _>>().map(Some)
    }
}

/// Parses a parameter's value as a number.
pub(crate) fn number<T: FromStr>(name: &str, value: &str) -> Result<T, ViewerError> {
    let shown: String = value.chars().take(40).collect();
    value.parse().map_err(|_| bad_request(format_args!("{name} takes a number, not {shown:?}")))
}

/// The most bytes of a compiled pattern. A query can have many.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A pattern: a part of a name, or `/REGEX/`.
pub(crate) fn pattern(text: &str) -> Result<Pattern, ViewerError> {
    let regex =
        text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|regex| !regex.is_empty());
    let pattern = match regex {
        Some(regex) => Pattern::regex_within(regex, MAX_PATTERN_BYTES),
        None => Pattern::substring_within(text, MAX_PATTERN_BYTES),
    };
    pattern.map_err(|error: nyquist_analysis::PatternError| bad_request(&error as &dyn Display))
}

/// A search for names: a pattern, or `!PATTERN` for the others.
pub(crate) struct NameSearch {
    pattern: Pattern,
    is_negated: bool,
}

impl NameSearch {
    /// Whether it finds a name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.matches_any([name])
    }

    /// Whether it finds what has several names.
    pub(crate) fn matches_any<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        names.into_iter().any(|name| self.pattern.matches(name)) != self.is_negated
    }
}

/// Parses a search.
pub(crate) fn name_search(text: &str) -> Result<NameSearch, ViewerError> {
    let negated = text.strip_prefix('!').filter(|rest| !rest.is_empty());
    Ok(NameSearch { pattern: pattern(negated.unwrap_or(text))?, is_negated: negated.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let parameters = Parameters::parse("q=a%20b&threads=1,2&empty=&on=1&off=0");
        assert_eq!(parameters.get("q"), Some("a b"));
        assert_eq!(parameters.numbers("threads", ',').unwrap(), Some(vec![1, 2]));
        assert_eq!(parameters.get("empty"), None);
        assert!(parameters.is_set("on") && !parameters.is_set("off") && !parameters.is_set("other"));
    }

    #[test]
    fn wrong_numbers_are_refused_with_a_sentence() {
        let parameters = Parameters::parse("width=x&threads=1,,2&huge=99999999999999999999999");
        let message = |errors: ViewerError| errors.message;
        assert_eq!(
            message(parameters.at_most("width", 1, 9).unwrap_err()),
            "width takes a number, not \"x\""
        );
        assert_eq!(
            message(parameters.numbers("threads", ',').unwrap_err()),
            "threads takes a number, not \"\""
        );
        assert!(parameters.number::<usize>("huge").is_err());
        let missing = parameters.required::<usize>("function").unwrap_err();
        assert_eq!((missing.status, &*missing.message), (400, "the parameter function is missing"));
    }

    #[test]
    fn a_pattern_is_a_part_of_a_name_or_a_regex() {
        assert!(pattern("PARSE").unwrap().matches("my_parser"));
        assert!(pattern("/^parse/").unwrap().matches("parser"));
        assert!(!pattern("/^parse/").unwrap().matches("my_parser"));
        assert!(pattern("/").unwrap().matches("a/b"));
        assert_eq!(pattern("/(/").unwrap_err().status, 400);
        let finds = |search: &str, name: &str| name_search(search).unwrap().matches(name);
        assert!(finds("!PARSE", "draw") && !finds("!parse", "my_parser") && finds("!", "a!"));
    }
}
