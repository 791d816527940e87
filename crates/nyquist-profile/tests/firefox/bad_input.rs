//! Files that are no profile, or a damaged one, are refused with a specific error. No input makes the reader
//! panic.

use std::io::{self, Read};

use nyquist_profile::firefox::{self, FormatVersion, Inconsistency, ReadError, WriteOptions};
use serde_json::{Value, json};

use crate::check::places;
use nyquist_test_support::sample_profile::sample_profile;

fn written(version: FormatVersion, gzip: bool) -> Vec<u8> {
    let mut output = Vec::new();
    firefox::write(&sample_profile(), WriteOptions { version, gzip }, &mut output).unwrap();
    output
}

fn document(version: FormatVersion) -> Value {
    serde_json::from_slice(&written(version, false)).unwrap()
}

fn read(document: &Value) -> Result<nyquist_profile::Profile, ReadError> {
    firefox::read(document.to_string().as_bytes())
}

fn check(input: &[u8], expected: &str) {
    let error = firefox::read(input).expect_err(expected).to_string();
    assert!(error.starts_with(expected), "expected {expected:?}, found {error:?}");
}

#[test]
fn what_is_no_profile_is_called_so() {
    check(b"", "this is not a profile: it is empty");
    check(b"\x7fELF", "this is not a profile: it is not JSON");
    check(b"hello", "this is not a profile: it is not JSON");
    check(b"PK\x03\x04", "this is not a profile: it is not JSON");
    check(br#"{"meta":{"preprocessedProfileVersion":66}} trailing"#, "this is not a profile: it is not JSON");
    for json in ["null", "[]", "[1,2,3]", "7", "\"text\"", "{}", r#"{"traceEvents":[]}"#, r#"{"meta":{}}"#] {
        check(json.as_bytes(), "this is not a profile: it is JSON, but not a profile");
    }
    check(br#"{"meta":{"preprocessedProfileVersion":66}}"#, "this is not a profile: it is JSON, but not");
}

#[test]
fn versions_that_are_not_known_are_named() {
    check(
        br#"{"meta":{"preprocessedProfileVersion":71},"threads":[]}"#,
        "the profile has version 71, but only versions up to 70",
    );
    check(
        br#"{"meta":{"preprocessedProfileVersion":39},"threads":[]}"#,
        "the profile has version 39, but only versions from 40",
    );
    check(
        br#"{"meta":{"version":99},"threads":[]}"#,
        "this is a gecko profile of Firefox of version 99, which is not known",
    );
    // The tables of a newer version may have other types, so the version number is checked first.
    check(br#"{"meta":{"preprocessedProfileVersion":99},"shared":7}"#, "the profile has version 99");
}

#[test]
fn a_profile_that_is_cut_off_is_called_so() {
    let json = written(FormatVersion::V66, false);
    for end in [1, 2, 100, json.len() / 2, json.len() - 1] {
        check(&json[..end], "the profile is cut off: its JSON ends too early");
    }
    let gzip = written(FormatVersion::V66, true);
    for end in [2, 10, 18, gzip.len() / 2, gzip.len() - 1] {
        check(&gzip[..end], "the profile is cut off: its gzip data ends too early");
    }
}

#[test]
fn a_damaged_gzip_is_called_so() {
    let mut gzip = written(FormatVersion::V66, true);
    let checksum = gzip.len() - 8;
    gzip[checksum] ^= 1;
    check(&gzip, "the profile is damaged: its gzip data is invalid");
    check(
        b"\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        "the profile is damaged: its gzip data is invalid",
    );
}

#[test]
fn an_error_of_the_input_is_passed_on() {
    struct Unreadable;
    impl Read for Unreadable {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::IsADirectory.into())
        }
    }
    let broken = &br#"{"meta":"#[..];
    for error in [firefox::read(Unreadable), firefox::read(broken.chain(Unreadable))] {
        assert!(matches!(error, Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::IsADirectory));
    }
}

/// Sets `value` at a path of a good profile, and expects an error about inconsistent tables there.
fn inconsistent(version: FormatVersion, place: &str, value: Value, expected: &str) {
    let mut document = document(version);
    *document.pointer_mut(place).unwrap_or_else(|| panic!("{place} is not there")) = value;
    match read(&document) {
        Err(ReadError::Inconsistent(error)) => {
            let error = error.to_string();
            assert!(error.starts_with(expected), "{place}: expected {expected:?}, found {error:?}");
        }
        other => panic!("{place}: expected {expected:?}, found {other:?}"),
    }
}

#[test]
fn indexes_out_of_range_are_named() {
    let in_tables = |place: &str, value: Value, expected: &str| {
        inconsistent(FormatVersion::V66, &format!("/shared{place}"), value.clone(), expected);
        inconsistent(FormatVersion::V49, &format!("/threads/0{place}"), value, expected);
    };
    in_tables("/stackTable/frame/0", json!(99), "stackTable.frame[0] is 99");
    in_tables("/stackTable/frame/0", json!(null), "stackTable.frame[0] is none");
    in_tables("/frameTable/func/0", json!(99), "frameTable.func[0] is 99");
    in_tables("/frameTable/nativeSymbol/0", json!(99), "frameTable.nativeSymbol[0] is 99");
    in_tables("/frameTable/category/0", json!(99), "frameTable.category[0] is 99");
    in_tables("/frameTable/subcategory/0", json!(99), "frameTable.subcategory[0] is 99");
    in_tables("/funcTable/name/0", json!(99), "funcTable.name[0] is 99");
    in_tables("/funcTable/resource/0", json!(99), "funcTable.resource[0] is 99");
    in_tables("/resourceTable/lib/0", json!(99), "resourceTable.lib[0] is 99");
    in_tables("/nativeSymbols/libIndex/0", json!(99), "nativeSymbols.libIndex[0] is 99");
    in_tables("/nativeSymbols/name/0", json!(99), "nativeSymbols.name[0] is 99");
    in_tables("/nativeSymbols/address/0", json!(-1), "nativeSymbols.address[0] is none");
    inconsistent(FormatVersion::V66, "/shared/funcTable/source/0", json!(99), "funcTable.source[0] is 99");
    inconsistent(FormatVersion::V66, "/shared/sources/filename/0", json!(99), "sources.filename[0] is 99");
    inconsistent(
        FormatVersion::V49,
        "/threads/0/funcTable/fileName/0",
        json!(99),
        "funcTable.fileName[0] is 99",
    );
    for version in [FormatVersion::V49, FormatVersion::V66] {
        inconsistent(version, "/threads/0/samples/stack/0", json!(99), "samples.stack[0] is 99");
        inconsistent(version, "/threads/0/markers/name/0", json!(99), "markers.name[0] is 99");
        inconsistent(version, "/threads/0/markers/category/0", json!(99), "markers.category[0] is 99");
        inconsistent(version, "/threads/0/markers/phase/0", json!(9), "markers.phase[0] does not fit");
        inconsistent(
            version,
            "/threads/0/markers/data/0/cause/stack",
            json!(99),
            "markers.data[0] has the stack 99",
        );
    }
}

#[test]
fn stacks_that_go_in_circles_are_refused() {
    inconsistent(FormatVersion::V49, "/threads/0/stackTable/prefix/1", json!(1), "stackTable.prefix[1] is 1");
    inconsistent(FormatVersion::V49, "/threads/0/stackTable/prefix/0", json!(2), "stackTable.prefix[0] is 2");
    inconsistent(
        FormatVersion::V66,
        "/shared/stackTable/prefixOffset/1",
        json!(2),
        "stackTable.prefixOffset[1] is 2",
    );
}

#[test]
fn columns_of_different_lengths_are_named() {
    inconsistent(FormatVersion::V66, "/shared/frameTable/length", json!(99), "frameTable.func has");
    inconsistent(FormatVersion::V66, "/shared/frameTable/line", json!([]), "frameTable.line has 0 rows");
    inconsistent(
        FormatVersion::V66,
        "/threads/0/samples/timeDeltas",
        json!([1]),
        "samples.timeDeltas has 1 rows",
    );
    inconsistent(FormatVersion::V66, "/threads/0/samples/timeDeltas", json!(null), "samples.time is missing");
    inconsistent(FormatVersion::V49, "/threads/0/samples/weight", json!([1]), "samples.weight has 1 rows");
    let expected = Inconsistency {
        table: "samples",
        column: "weight",
        row: None,
        problem: "has 1 rows, but the table has 3".into(),
    };
    let mut document = document(FormatVersion::V49);
    document["threads"][0]["samples"]["weight"] = json!([1]);
    assert!(matches!(read(&document), Err(ReadError::Inconsistent(error)) if error == expected));
}

#[test]
fn other_weights_than_samples_are_refused() {
    for (place, value) in
        [("weightType", json!("bytes")), ("weightType", json!("tracing-ms")), ("weight", json!([1, -1, 1]))]
    {
        let mut document = document(FormatVersion::V66);
        document["threads"][0]["samples"][place] = value;
        assert!(matches!(read(&document), Err(ReadError::Unsupported(_))), "{place}");
    }
}

#[test]
fn a_member_of_a_wrong_type_is_malformed() {
    let mut document = document(FormatVersion::V66);
    document["shared"]["frameTable"]["func"] = json!("text");
    let error = read(&document).unwrap_err().to_string();
    assert!(error.starts_with("the profile is malformed: invalid type: string \"text\""), "{error}");
}

#[test]
fn what_a_length_claims_is_not_allocated() {
    let mut document = document(FormatVersion::V66);
    document["threads"][0]["samples"]["length"] = json!(u64::MAX);
    document["shared"]["stackTable"]["length"] = json!(1_u64 << 50);
    assert!(read(&document).is_err());
}

#[test]
fn nesting_without_end_is_refused() {
    for open in ["[", "{\"a\":", "{\"meta\":{\"extra\":[{\"entries\":[{\"value\":["] {
        assert!(firefox::read(open.repeat(100_000).as_bytes()).is_err());
    }
}

#[test]
fn no_document_makes_the_reader_panic() {
    let hostile = [
        json!(null),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(-1e300),
        json!("x"),
        json!([]),
        json!({}),
        json!([[]]),
        json!(true),
    ];
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let document = document(version);
        for place in places(&document) {
            for value in &hostile {
                let mut document = document.clone();
                *document.pointer_mut(&place).unwrap() = value.clone();
                write_again(read(&document));
            }
        }
    }
}

/// Everything that the reader accepts can be written, and read again.
fn write_again(read: Result<nyquist_profile::Profile, ReadError>) {
    let Ok(profile) = read else { return };
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let mut output = Vec::new();
        firefox::write(&profile, WriteOptions { version, gzip: false }, &mut output).unwrap();
        serde_json::from_slice::<Value>(&output).unwrap();
        firefox::read(output.as_slice()).unwrap();
    }
}

#[test]
fn no_flipped_byte_makes_the_reader_panic() {
    for gzip in [false, true] {
        let good = written(FormatVersion::V66, gzip);
        for index in (0..good.len()).step_by(3) {
            for bit in [0, 3, 6] {
                let mut bytes = good.clone();
                bytes[index] ^= 1 << bit;
                drop(firefox::read(bytes.as_slice()));
            }
        }
    }
}
