//! Selects samples by their labels.

use super::message::{Label, Profile, Sample};
use crate::error::ReadError;
use crate::labels::{LabelSelection, is_one_of, unknown};
use crate::strings::NumberedStrings;

/// The requested labels, by the numbers of their keys.
pub(super) struct LabelFilter<'a> {
    requested: Vec<(i64, Vec<&'a str>)>,
}

impl<'a> LabelFilter<'a> {
    /// Parses `KEY=VALUE` and `KEY`.
    ///
    /// # Errors
    /// If no sample has a label with the key.
    pub(super) fn new(
        file: &Profile,
        strings: &NumberedStrings<'_>,
        labels: &'a [String],
    ) -> Result<Self, ReadError> {
        let keys = || file.sample.iter().flat_map(|sample| &sample.label).map(|label| label.key);
        let number = |name: &str| {
            let found = keys().find(|&key| strings.text(key) == name);
            found.ok_or_else(|| unknown(name, keys().map(|key| strings.text(key))))
        };
        let requested = LabelSelection::new(labels);
        let requested = requested.keys().iter().map(|(name, values)| Ok((number(name)?, values.clone())));
        Ok(Self { requested: requested.collect::<Result<_, _>>()? })
    }

    /// Whether a sample has the requested labels. O(labels of the sample × requested labels).
    pub(super) fn has(&self, sample: &Sample, strings: &NumberedStrings<'_>) -> bool {
        self.requested.iter().all(|(key, values)| {
            let mut labels = sample.label.iter().filter(|label| label.key == *key);
            labels.any(|label| is_one_of(values, |value| is(label, value, strings)))
        })
    }
}

/// Whether a label has a value: its text, or its number.
fn is(label: &Label, value: &str, strings: &NumberedStrings<'_>) -> bool {
    match label.text {
        0 => value.parse() == Ok(label.number),
        text => strings.text(text) == value,
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Label, Profile, Sample, ValueType};
    use super::super::read_labelled;
    use prost::Message as _;

    /// Three samples: of a GET, of a POST of 7 bytes, and without labels.
    fn file() -> Vec<u8> {
        let strings = ["", "samples", "count", "method", "GET", "POST", "size"]
            .map(|text| text.as_bytes().to_vec())
            .to_vec();
        let text = |key, text| Label { key, text, ..Label::default() };
        let sample = |value, label| Sample { value: vec![value], label, ..Sample::default() };
        let size = Label { key: 6, number: 7, ..Label::default() };
        Profile {
            string_table: strings,
            sample_type: vec![ValueType { kind: 1, unit: 2 }],
            sample: vec![
                sample(1, vec![text(3, 4)]),
                sample(10, vec![text(3, 5), size]),
                sample(100, vec![]),
            ],
            ..Profile::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn samples_are_chosen_by_their_labels() {
        let check = |labels: &[&str], expected: u64| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            let profile = read_labelled(&file(), None, &labels).unwrap().profile;
            let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
            let sum: u64 = samples.map(|sample| sample.weight * profile.meta().interval).sum();
            assert_eq!(sum, expected, "{labels:?}");
        };
        check(&[], 111);
        check(&["method"], 11);
        check(&["method=GET"], 1);
        check(&["method=GET", "method=POST"], 11);
        check(&["method=POST", "size=7"], 10);
        check(&["method=GET", "size"], 0);
        check(&["method="], 0);
        let error = read_labelled(&file(), None, &["path=/".to_owned()]).unwrap_err().to_string();
        assert!(error.ends_with("its samples have no label `path`, but only method, size"), "{error}");
    }
}
