//! The headers that let pages of another origin read responses. Only the front end's pages
//! may. Even a page with the token (from a link that was pasted somewhere) gets nothing. Only responses to
//! paths with the token have these headers, so that others do not learn the front end's address.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HeaderMap, HeaderName, HeaderValue, VARY,
};
use hyper::{Response, StatusCode};

use crate::reply::Reply;

/// <https://wicg.github.io/private-network-access/>, section 3.1.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Lets pages of this origin read the response. The header is the same for every request, so that no cache
/// can confuse responses.
pub(crate) fn allow_origin(reply: &mut Reply, origin: Option<&HeaderValue>) {
    if let Some(origin) = origin {
        reply.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
}

/// Responds to a browser's preflight request (Fetch standard, "CORS-preflight fetch"). The
/// requested headers are allowed by name, because some browsers do not accept `*` for `User-Agent`.
pub(crate) fn preflight(requested: &HeaderMap, methods: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::new()));
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    headers.insert(VARY, HeaderValue::from_name(ACCESS_CONTROL_REQUEST_HEADERS));
    if let Some(names) = requested.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if requested.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    reply
}
