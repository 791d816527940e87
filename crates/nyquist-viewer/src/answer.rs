//! The answer to a question: JSON for the page, or a file to be saved.

use nyquist_profile::firefox::{self, WriteOptions};
use nyquist_server::{Answer, Refusal};

use crate::answers::{Asked, json_answer, picture};
use crate::page_file;
use crate::refusal::internal;

/// Answers a question.
pub(crate) fn answer(question: &str, asked: &Asked<'_, '_>) -> Result<Answer, Refusal> {
    match question {
        "flamegraph.svg" => picture::svg(asked),
        "page.html" => page(asked),
        "profile.json" => whole_profile(asked),
        question => json_answer(question, asked).map(Answer::json),
    }
}

/// The selection as a page of its own.
fn page(asked: &Asked<'_, '_>) -> Result<Answer, Refusal> {
    let mut body = Vec::new();
    page_file::write(asked, &mut body).map_err(|_| internal())?;
    Ok(Answer { content_type: "text/html; charset=utf-8", file_name: Some("profile.html"), body })
}

/// All of the profile, for a recording that has no file yet.
fn whole_profile(asked: &Asked<'_, '_>) -> Result<Answer, Refusal> {
    let mut body = Vec::new();
    let options = WriteOptions { gzip: true, ..WriteOptions::default() };
    firefox::write(asked.view.profile(), options, &mut body).map_err(|_| internal())?;
    Ok(Answer { content_type: "application/gzip", file_name: Some("profile.json.gz"), body })
}
