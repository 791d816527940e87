//! Arbitrary JSON bodies for the three endpoints that look something up.

use crate::loopback::server;
use serde_json::Value;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Some((endpoint, body)) = bytes.split_first() else { return };
    let endpoint = ["symbolicate/v5", "source/v1", "asm/v1"][usize::from(endpoint % 3)];
    let (token, host, len) = (&server().token, server().host(), body.len());
    let head = format!("POST /{token}/{endpoint} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len}\r\n\r\n");
    let answer = server().exchange(&[head.as_bytes(), body].concat());
    let answer = String::from_utf8(answer).expect("an answer is text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head.split(' ').nth(1).expect("an answer has a status");
    assert!(matches!(status, "200" | "400" | "404" | "503"), "{head}");
    let body: Value = serde_json::from_str(body).expect("an answer is JSON");
    assert!(status == "200" || body.get("error").is_some(), "{head} {body}");
}
