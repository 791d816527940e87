//! The reference of the rows and the page's types are those of the structs. `UPDATE_SCHEMA=1` updates both.
#![cfg(feature = "schema")]

use std::fs;
use std::path::Path;

use nyquist_analysis::schema::document;

/// The line from which on the reference is generated.
const GENERATED: &str =
    "<!-- From here on generated: UPDATE_SCHEMA=1 cargo test -p nyquist-analysis --features schema -->\n";

/// Fails unless a file has a text, or writes it.
fn hold(path: &str, expected: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let found = fs::read_to_string(&path).unwrap_or_default();
    let expected = expected(&found);
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        assert_eq!(found, expected, "{}: UPDATE_SCHEMA=1 updates it", path.display());
    }
}

#[test]
fn the_reference_is_that_of_the_structs() {
    hold("docs/report-json.md", |found| {
        let (by_hand, _) = found.split_once(GENERATED).expect("the reference has its mark");
        format!("{by_hand}{GENERATED}{}", document::reference())
    });
}

#[test]
fn the_types_of_the_page_are_up_to_date() {
    hold("crates/nyquist-viewer/schema.d.ts", |_| document::typescript());
}

#[test]
fn every_member_has_a_meaning_and_a_type() {
    let (reference, types) = (document::reference(), document::typescript());
    assert!(!reference.contains("|  |"), "{reference}");
    assert!(!types.contains("unknown") && !types.contains("/**  */"), "{types}");
}
