//! The response to a request: JSON for the page, or a file to save.

use nyquist_profile::firefox::{self, WriteOptions};
use nyquist_server::{ViewerError, ViewerResponse};

use crate::answers::{QueryContext, json_answer, picture};
use crate::errors::internal;
use crate::page_file;

/// Answers a request.
pub(crate) fn answer(question: &str, context: &QueryContext<'_, '_>) -> Result<ViewerResponse, ViewerError> {
    match question {
        "flamegraph.svg" => picture::svg(context),
        "page.html" => page(context),
        "profile.json" => whole_profile(context),
        question => json_answer(question, context).map(ViewerResponse::json),
    }
}

/// The selection as a separate page.
fn page(context: &QueryContext<'_, '_>) -> Result<ViewerResponse, ViewerError> {
    let mut body = Vec::new();
    page_file::write(context, &mut body).map_err(|_| internal())?;
    Ok(ViewerResponse { content_type: "text/html; charset=utf-8", file_name: Some("profile.html"), body })
}

/// The whole profile, for a recording without a file yet.
fn whole_profile(context: &QueryContext<'_, '_>) -> Result<ViewerResponse, ViewerError> {
    let mut body = Vec::new();
    let options = WriteOptions { gzip: true, ..WriteOptions::default() };
    let profile = context.view.profile();
    let written = match context.parameters.get("counters") {
        Some("0") => firefox::write_without_counters(profile, options, &mut body),
        _ => firefox::write(profile, options, &mut body),
    };
    written.map_err(|_| internal())?;
    Ok(ViewerResponse { content_type: "application/gzip", file_name: Some("profile.json.gz"), body })
}
