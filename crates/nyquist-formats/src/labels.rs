//! The requested labels of samples, as `KEY=VALUE` or `KEY`.

use crate::error::ReadError;

/// How many labels a message lists.
const LISTED: usize = 12;

/// The requested labels. For each key, one of the values is enough, or any value if none is stated.
pub(crate) struct LabelSelection<'a> {
    keys: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> LabelSelection<'a> {
    /// Parses `KEY=VALUE` and `KEY`.
    pub(crate) fn new(labels: &'a [String]) -> Self {
        let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
        for label in labels {
            let (name, value) =
                label.split_once('=').map_or((&**label, None), |(name, value)| (name, Some(value)));
            match keys.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.extend(value),
                None => keys.push((name, value.into_iter().collect())),
            }
        }
        Self { keys }
    }

    /// The keys, each with its values.
    pub(crate) fn keys(&self) -> &[(&'a str, Vec<&'a str>)] {
        &self.keys
    }
}

/// Whether a label's value is one of the requested ones.
pub(crate) fn is_one_of(values: &[&str], is: impl Fn(&str) -> bool) -> bool {
    values.is_empty() || values.iter().any(|value| is(value))
}

/// The error if no sample has a label with this key. It lists the existing keys.
pub(crate) fn unknown<'k>(name: &str, keys: impl IntoIterator<Item = &'k str>) -> ReadError {
    let mut known: Vec<&str> = Vec::new();
    for key in keys {
        if known.len() < LISTED && !known.contains(&key) {
            known.push(key);
        }
    }
    let known =
        if known.is_empty() { "none at all".to_owned() } else { format!("only {}", known.join(", ")) };
    ReadError::Unsupported(format!("its samples have no label `{name}`, but {known}"))
}
