//! Arbitrary questions to the built-in viewer, of the tests' profile.

use std::sync::{Arc, OnceLock};

use nyquist_profile::firefox::{self, FormatVersion};
use nyquist_server::{Client, Viewer as _};
use nyquist_viewer::BuiltinViewer;
use serde_json::Value;

use crate::loopback::Names;
use crate::sample_profile::sample_document;

/// What can be asked.
const QUESTIONS: [&str; 10] = [
    "info",
    "timeline",
    "flamegraph",
    "chart",
    "tree",
    "functions",
    "callers",
    "search",
    "source",
    "markers",
];

/// Takes one input: a question by its number, then its parameters.
pub fn run(bytes: &[u8]) {
    let Some((question, query)) = bytes.split_first() else { return };
    let Ok(query) = std::str::from_utf8(query) else { return };
    let question = QUESTIONS[usize::from(*question) % QUESTIONS.len()];
    match viewer().answer(question, query, &Client::default()) {
        Ok(body) => drop(serde_json::from_slice::<Value>(&body).expect("an answer is JSON")),
        Err(refusal) => assert!(matches!(refusal.status, 400 | 404), "{refusal:?}"),
    }
}

fn viewer() -> &'static BuiltinViewer {
    static VIEWER: OnceLock<BuiltinViewer> = OnceLock::new();
    VIEWER.get_or_init(|| {
        let document = sample_document(FormatVersion::V66, false);
        let profile = firefox::read(document.as_slice()).expect("the tests' profile can be read");
        BuiltinViewer::new(profile, Arc::new(Names))
    })
}
