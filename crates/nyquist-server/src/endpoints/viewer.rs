//! The built-in viewer: its page, the files of the page, and `api/v1`.

use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderValue,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use hyper::{Request, StatusCode};

use crate::reply::{ApiError, Reply, save_as, with_type};
use crate::viewer::{Asset, Client, Viewer, ViewerError, ViewerResponse};

/// The page may load its own files and responses, and nothing from other hosts. The page itself contains
/// no script or style, so no name in a profile can become one.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                              connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Responds with a file of the page.
pub(crate) fn asset(
    viewer: &dyn Viewer,
    path: &str,
    front_end: &str,
    request: &Request<Incoming>,
) -> Result<Reply, ApiError> {
    let asset = viewer.asset(path, front_end).ok_or_else(ApiError::not_found)?;
    Ok(file(&asset, request.headers()))
}

fn file(asset: &Asset, requested: &HeaderMap) -> Reply {
    let is_known =
        requested.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == asset.etag.as_bytes());
    let takes_gzip = requested.get(ACCEPT_ENCODING).and_then(|takes| takes.to_str().ok());
    let takes_gzip = takes_gzip.is_some_and(|takes| takes.split(',').any(|one| one.trim() == "gzip"));
    let (status, body) = match (is_known, takes_gzip) {
        (true, _) => (StatusCode::NOT_MODIFIED, Bytes::new()),
        (false, true) => (StatusCode::OK, asset.gzip.clone()),
        (false, false) => (StatusCode::OK, asset.plain.clone()),
    };
    let mut reply = with_type(status, asset.content_type, body);
    let headers = reply.headers_mut();
    if status == StatusCode::OK && takes_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(etag) = HeaderValue::try_from(&*asset.etag) {
        headers.insert(ETAG, etag);
    }
    // Revalidated each time, because another version of the program may serve at the same address.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    reply
}

/// Handles a request of the page. Blocks.
pub(crate) fn answer(
    viewer: &dyn Viewer,
    question: &str,
    query: &str,
    client: &Client,
) -> Result<Reply, ApiError> {
    reply(viewer.answer(question, query, client))
}

/// Converts the result of a request to a response.
pub(crate) fn reply(answer: Result<ViewerResponse, ViewerError>) -> Result<Reply, ApiError> {
    let answer = answer.map_err(|ViewerError { status, message }| {
        ApiError::new(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
    })?;
    let mut reply = with_type(StatusCode::OK, answer.content_type, answer.body.into());
    if let Some(name) = answer.file_name {
        save_as(&mut reply, name);
    }
    Ok(reply)
}
