//! Selects samples by their attributes, those of their profile and those of its resource.

use std::borrow::Cow;

use super::message::{
    AnyValue, AnyValueContent, Dictionary, KeyValue, Profile, ProfilesData, ResourceProfiles, Sample,
};
use crate::error::ReadError;
use crate::labels::{LabelSelection, is_one_of, unknown};
use crate::strings::NumberedStrings;

/// The requested labels, and the rows of the table of attributes that match them.
pub(super) struct LabelFilter<'a> {
    requested: LabelSelection<'a>,
    /// The index of the requested label that each row of the table matches.
    rows: Vec<Option<usize>>,
}

/// The requested labels that were found so far.
#[derive(Clone)]
pub(super) struct LabelMatches(Vec<bool>);

impl LabelMatches {
    /// These labels, and those among the given rows of the table.
    pub(super) fn with<'f>(&'f self, filter: &LabelFilter<'_>, rows: &[i32]) -> Cow<'f, Self> {
        let mut found = Cow::Borrowed(self);
        for label in rows.iter().filter_map(|&row| *filter.rows.get(usize::try_from(row).ok()?)?) {
            if !found.0[label] {
                found.to_mut().0[label] = true;
            }
        }
        found
    }

    /// Whether all requested labels were found.
    pub(super) fn is_all(&self) -> bool {
        self.0.iter().all(|&it| it)
    }
}

impl<'a> LabelFilter<'a> {
    /// Parses `KEY=VALUE` and `KEY`.
    ///
    /// # Errors
    /// If no sample has a label with the key.
    pub(super) fn new(
        file: &ProfilesData,
        dictionary: &Dictionary,
        strings: &NumberedStrings<'_>,
        labels: &'a [String],
    ) -> Result<Self, ReadError> {
        let requested = LabelSelection::new(labels);
        if requested.keys().is_empty() {
            return Ok(Self { requested, rows: Vec::new() });
        }
        let keys = keys(file, dictionary, strings);
        if let Some((name, _)) = requested.keys().iter().find(|(name, _)| !keys.iter().any(|key| key == name))
        {
            return Err(unknown(name, keys.iter().map(|key| &**key)));
        }
        let label_of = |key: &str, value: &str| {
            requested
                .keys()
                .iter()
                .position(|(name, values)| *name == key && is_one_of(values, |it| it == value))
        };
        // The first row means no attribute.
        let rows = dictionary.attributes.iter().enumerate().map(|(number, row)| {
            let value = text_of(row.value.as_ref(), strings);
            label_of(strings.text(row.key.into()), &value).filter(|_| number > 0)
        });
        let rows = rows.collect();
        Ok(Self { requested, rows })
    }

    /// The requested labels that a resource has.
    pub(super) fn of_resource(
        &self,
        resource: &ResourceProfiles,
        strings: &NumberedStrings<'_>,
    ) -> LabelMatches {
        let attributes = || resource.resource.iter().flat_map(|resource| &resource.attributes);
        let has = |(name, values): &(&str, Vec<&str>)| {
            attributes().any(|attribute| {
                let value = text_of(attribute.value.as_ref(), strings);
                key_of(attribute, strings) == *name && is_one_of(values, |it| it == value)
            })
        };
        LabelMatches(self.requested.keys().iter().map(has).collect())
    }
}

/// The keys of samples, of their profiles and of the resources of these.
fn keys<'s>(
    file: &'s ProfilesData,
    dictionary: &Dictionary,
    strings: &'s NumberedStrings<'_>,
) -> Vec<Cow<'s, str>> {
    let profiles = || file.resource_profiles.iter().flat_map(|it| &it.scopes).flat_map(|it| &it.profiles);
    let of_samples = profiles().flat_map(|it: &Profile| &it.samples).flat_map(|it: &Sample| &it.attributes);
    let mut is_used = vec![false; dictionary.attributes.len()];
    for &row in of_samples.chain(profiles().flat_map(|it| &it.attributes)) {
        if let Some(is_used) = usize::try_from(row).ok().and_then(|row| is_used.get_mut(row)) {
            *is_used = true;
        }
    }
    let used = dictionary.attributes.iter().zip(is_used).skip(1).filter(|(_, is_used)| *is_used);
    let of_rows = used.map(|(row, _)| Cow::Borrowed(strings.text(row.key.into())));
    let resources = file.resource_profiles.iter().flat_map(|it| &it.resource).flat_map(|it| &it.attributes);
    let mut keys: Vec<_> = of_rows.chain(resources.map(|it| key_of(it, strings))).collect();
    keys.retain(|key| !key.is_empty());
    keys
}

/// The key of a resource's attribute.
pub(super) fn key_of<'s>(attribute: &'s KeyValue, strings: &'s NumberedStrings<'_>) -> Cow<'s, str> {
    match strings.text(attribute.key_index.into()) {
        "" => String::from_utf8_lossy(&attribute.key),
        key => Cow::Borrowed(key),
    }
}

/// An attribute's value as text. Lists and bytes have none.
pub(super) fn text_of<'s>(value: Option<&'s AnyValue>, strings: &'s NumberedStrings<'_>) -> Cow<'s, str> {
    match value.and_then(|value| value.content.as_ref()) {
        Some(AnyValueContent::Text(text)) => String::from_utf8_lossy(text),
        Some(AnyValueContent::Truth(truth)) => truth.to_string().into(),
        Some(AnyValueContent::Integer(number)) => number.to_string().into(),
        Some(AnyValueContent::Number(number)) => number.to_string().into(),
        Some(&AnyValueContent::TextIndex(index)) => Cow::Borrowed(strings.text(index.into())),
        None => Cow::Borrowed(""),
    }
}
