//! `GET profile.json`: the profile as it is stored.

use hyper::StatusCode;
use hyper::body::Bytes;

use crate::reply::{self, Reply};

/// Answers with the stored bytes. A compressed profile goes out as a file of type gzip and not as a compressed
/// transfer of JSON: the front end knows gzip by its first bytes, so it gets what it would get from the disk,
/// while of a transfer browsers decode the first gzip member only and drop the rest without a word.
pub(crate) fn answer(profile: &Bytes) -> Reply {
    reply::with_type(StatusCode::OK, content_type(profile), profile.clone())
}

fn content_type(profile: &[u8]) -> &'static str {
    match profile {
        [0x1f, 0x8b, ..] => "application/gzip",
        [b'P', b'K', 3, 4, ..] => "application/zip",
        [b'{', ..] => "application/json",
        _ => "application/octet-stream",
    }
}
