//! `GET profile.json`: the stored profile.

use hyper::StatusCode;
use hyper::body::Bytes;

use crate::reply::{self, Reply};

/// Responds with the stored bytes. A compressed profile is sent as a file of type gzip and not as a
/// compressed transfer of JSON. The front end recognises gzip by its first bytes, so it gets the same as
/// from the disk. In a compressed transfer, browsers decode only the first gzip member and silently drop
/// the others.
pub(crate) fn answer(profile: Bytes) -> Reply {
    let content_type = content_type(&profile);
    let mut reply = reply::with_type(StatusCode::OK, content_type, profile);
    reply::save_as(&mut reply, file_name(content_type));
    reply
}

/// The name for saving it in a browser.
fn file_name(content_type: &str) -> &'static str {
    match content_type {
        "application/gzip" => "profile.json.gz",
        "application/zip" => "profile.zip",
        "application/json" => "profile.json",
        _ => "profile",
    }
}

fn content_type(profile: &[u8]) -> &'static str {
    match profile {
        [0x1f, 0x8b, ..] => "application/gzip",
        [b'P', b'K', 3, 4, ..] => "application/zip",
        [b'{', ..] => "application/json",
        _ => "application/octet-stream",
    }
}
