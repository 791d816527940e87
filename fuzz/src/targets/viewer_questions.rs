//! Arbitrary questions to the built-in viewer, of the tests' profile and in comparison with itself.

use std::sync::{Arc, OnceLock};

use nyquist_profile::firefox::{self, FormatVersion};
use nyquist_server::{Client, Viewer as _};
use nyquist_viewer::BuiltinViewer;
use serde_json::Value;

use crate::loopback::Names;
use crate::sample_profile::sample_document;

/// The kinds of queries.
const QUESTIONS: [&str; 18] = [
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
    "markers/chart",
    "counters",
    "moment",
    "heatmap",
    "diff",
    "diff/flamegraph",
    "flamegraph.svg",
    "page.html",
];

/// Takes one input: a question by its number, then its parameters.
pub fn run(bytes: &[u8]) {
    let Some((question, query)) = bytes.split_first() else { return };
    let Ok(query) = std::str::from_utf8(query) else { return };
    let question = QUESTIONS[usize::from(*question) % QUESTIONS.len()];
    match viewer().answer(question, query, &Client::default()) {
        Ok(answer) if answer.file_name.is_some() => assert!(!answer.body.is_empty(), "nothing is saved"),
        Ok(answer) => drop(serde_json::from_slice::<Value>(&answer.body).expect("an answer is JSON")),
        Err(denied) => assert!(matches!(denied.status, 400 | 404), "{denied:?}"),
    }
}

fn viewer() -> &'static BuiltinViewer {
    static VIEWER: OnceLock<BuiltinViewer> = OnceLock::new();
    VIEWER.get_or_init(|| {
        let document = sample_document(FormatVersion::V66, false);
        let profile = firefox::read(document.as_slice()).expect("the tests' profile can be read");
        BuiltinViewer::comparing(profile.clone(), profile, Arc::new(Names))
    })
}
