//! OpenTelemetry's profiles as JSON, by protobuf's mapping: integers of 64 bits are texts, and bytes are texts.

use super::message::ProfilesData;
use crate::error::{ImportedProfile, Note, ReadError};

const FORMAT: &str = "a profile of OpenTelemetry";

/// Reads a document, or the first of several that follow each other, each with its own dictionary. Its values and
/// labels are chosen as in the binary form.
///
/// # Errors
/// As for the binary form, and if it is no such JSON.
pub fn read(bytes: &[u8], requested: Option<&str>, labels: &[String]) -> Result<ImportedProfile, ReadError> {
    let mut documents = serde_json::Deserializer::from_slice(bytes).into_iter::<ProfilesData>();
    let first = documents.next().transpose().map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let mut imported = super::read::read_file(first.unwrap_or_default(), bytes.len(), requested, labels)?;
    let others = documents.take_while(Result::is_ok).count() as u64;
    if others > 0 {
        let what = "documents after the first one, which have dictionaries of their own".into();
        imported.notes.push(Note::LeftOut { count: others, what });
    }
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    /// What `MessageToJson` of the published definitions for Python (1.45.2) says of the folded stacks `main;a 100`,
    /// `main;b 30` and `main;b;c 7`.
    const FILE: &str = r#"{"resourceProfiles": [{"resource": {"attributes": [{"key": "process.pid", "value": {"intValue": "7"}},
        {"key": "process.executable.name", "value": {"stringValue": "app"}}]}, "scopeProfiles": [{"scope": {"name": "x"},
        "profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": [
        {"stackIndex": 1, "attributeIndices": [1], "values": ["100"], "timestampsUnixNano": ["100"]},
        {"stackIndex": 2, "attributeIndices": [1], "values": ["30"], "timestampsUnixNano": ["130"]},
        {"stackIndex": 3, "attributeIndices": [1], "values": ["7"], "timestampsUnixNano": ["137"]}], "durationNano": "138",
        "periodType": {"typeStrindex": 1, "unitStrindex": 2}, "period": "1"}]}]}], "dictionary": {"mappingTable": [{}],
        "locationTable": [{}, {"lines": [{"functionIndex": 1}]}, {"lines": [{"functionIndex": 2, "line": "7"}]},
        {"lines": [{"functionIndex": 3}]}, {"lines": [{"functionIndex": 4}]}], "functionTable": [{}, {"nameStrindex": 4},
        {"nameStrindex": 5}, {"nameStrindex": 6}, {"nameStrindex": 7}], "linkTable": [{}],
        "stringTable": ["", "samples", "count", "thread.id", "a", "main", "b", "c"],
        "attributeTable": [{}, {"keyStrindex": 3, "value": {"intValue": "9"}}],
        "stackTable": [{}, {"locationIndices": [1, 2]}, {"locationIndices": [3, 2]}, {"locationIndices": [4, 3, 2]}]}}"#;

    #[test]
    fn json_is_read_as_the_binary_form_is() {
        let imported = read(FILE.as_bytes(), None, &[]).unwrap();
        let profile = imported.profile;
        assert_eq!(stacks_of(&profile), ["main;a 100", "main;b 30", "main;b;c 7"]);
        assert_eq!((&*profile.processes()[0].name, &*profile.threads()[0].tid), ("app", "9"));
        assert_eq!((imported.notes, &*profile.meta().measure.name), (vec![], "samples"));
        assert!(profile.frames().iter().any(|frame| frame.line == Some(7)));
        let labelled = |label: &str| read(FILE.as_bytes(), None, &[label.to_owned()]);
        assert!(labelled("thread.id=9").is_ok() && labelled("thread").is_err());
        assert_eq!(crate::detect(FILE.as_bytes(), "x"), Some(crate::Format::OtlpJson));
    }

    #[test]
    fn odd_documents_do_no_harm() {
        for text in ["", "{}", "[]", r#"{"resourceProfiles":[{"scopeProfiles":7}]}"#, &FILE[..900]] {
            assert!(read(text.as_bytes(), None, &[]).is_err(), "{text}");
        }
        assert!(read(FILE.replace("\"100\"", "\"1e9\"").as_bytes(), None, &[]).is_err());
        let notes = read(FILE.repeat(3).as_bytes(), None, &[]).unwrap().notes;
        assert!(matches!(&notes[..], [Note::LeftOut { count: 2, .. }]), "{notes:?}");
    }
}
