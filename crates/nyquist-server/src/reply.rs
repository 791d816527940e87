//! Responses: JSON, and errors as JSON.

use std::fmt;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// The type of every response. The whole body exists when the header is sent, so its length is known.
pub(crate) type Reply = Response<Full<Bytes>>;

/// A request that fails.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    /// The kind of the error, for a program that has to tell it from others.
    code: Option<&'static str>,
}

/// The code of a path that does not exist, or has no valid token.
const NOT_FOUND: &str = "not-found";

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl fmt::Display) -> Self {
        Self { status, message: message.to_string(), code: None }
    }

    /// The request itself is invalid.
    pub(crate) fn bad_request(message: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The request is valid, but the requested data is not available. The status is 200, because with
    /// another one the front end shows only the status and drops the message.
    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(StatusCode::OK, message)
    }

    /// The common error for nonexistent paths and wrong tokens.
    pub(crate) fn not_found() -> Self {
        Self { code: Some(NOT_FOUND), ..Self::new(StatusCode::NOT_FOUND, "not found") }
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        #[derive(Serialize)]
        struct ErrorBody<'a> {
            error: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'static str>,
        }
        let body =
            serde_json::to_vec(&ErrorBody { error: &error.message, code: error.code }).unwrap_or_default();
        with_type(error.status, "application/json", body.into())
    }
}

/// A JSON text as a response.
pub(crate) fn json(body: Vec<u8>) -> Reply {
    with_type(StatusCode::OK, "application/json", body.into())
}

/// A response that browsers neither store nor interpret as another type.
pub(crate) fn with_type(status: StatusCode, content_type: &'static str, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// Makes a browser save a response under this name instead of showing it, because its scripts would have
/// this server's origin.
pub(crate) fn save_as(reply: &mut Reply, name: &str) {
    let headers = reply.headers_mut();
    if let Ok(disposition) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
}
