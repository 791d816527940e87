//! The link for opening a browser. It contains a code that is valid once, and the response redirects the
//! browser to the address with the token.
//!
//! A browser gets its address as an argument, and all users of a machine can read the arguments of every
//! running process. So the address must not contain the token. The code is worthless after its first use
//! or a minute. Another user who reads it and is faster than the browser gets nothing, either: the
//! response is only for connections of the served user, and of root. Root is needed because the relay for
//! browsers outside of a Windows Subsystem for Linux connects as root. An attempt of another user does not
//! use the code up.
//!
//! An alternative was a private file that redirects. But browsers in a snap or a flatpak read neither
//! `/tmp` nor hidden folders. So the file would have to be in the user's home, and be removed again.
//!
//! Only this link checks the user. With the token all connections are equal, because those through `ssh
//! -L` or the ports of a container do not belong to the user.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, HeaderValue, LOCATION, REFERRER_POLICY};
use hyper::{Method, Response, StatusCode};
use tokio::task::spawn_blocking;

use crate::peer_user;
use crate::reply::{ApiError, Reply};
use crate::token::Token;

/// How long a code is valid.
pub(crate) const LIFETIME: Duration = Duration::from_mins(1);

/// The page for a browser that cannot get the profile by this link.
const ELSEWHERE: &str = "open the link that is printed in the terminal";

/// The code and its target.
pub(crate) struct OneTimeLink {
    code: Token,
    target: HeaderValue,
    user: u32,
    expires: Instant,
    used: AtomicBool,
}

impl OneTimeLink {
    /// A code that redirects connections of `user` to `target` for some time.
    pub(crate) fn new(code: Token, target: HeaderValue, user: u32, lifetime: Duration) -> Self {
        Self { code, target, user, expires: Instant::now() + lifetime, used: AtomicBool::new(false) }
    }

    /// Its path.
    pub(crate) fn path(&self) -> String {
        format!("/open/{}", self.code.as_str())
    }

    /// Whether a request's path is this one.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        path.strip_prefix("/open/").is_some_and(|code| self.code.equals(code))
    }

    /// Handles a request with the code, which comes from the first of the two addresses to the second.
    pub(crate) async fn answer(&self, method: &Method, between: Option<(SocketAddr, SocketAddr)>) -> Reply {
        if method != Method::GET {
            let mut reply = Reply::from(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this path takes GET"));
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return reply;
        }
        if !self.is_for(user_between(between).await) {
            let message = format_args!("this link is for another user; {ELSEWHERE}").to_string();
            return ApiError::new(StatusCode::FORBIDDEN, message).into();
        }
        if Instant::now() >= self.expires || self.used.swap(true, Ordering::Relaxed) {
            let message = format_args!("this link is good once and for a minute; {ELSEWHERE}").to_string();
            return ApiError::new(StatusCode::GONE, message).into();
        }
        self.redirect()
    }

    fn is_for(&self, user: Option<u32>) -> bool {
        user.is_some_and(|user| user == self.user || user == 0)
    }

    fn redirect(&self) -> Reply {
        let mut reply = Response::new(Full::new(Bytes::new()));
        *reply.status_mut() = StatusCode::FOUND;
        let headers = reply.headers_mut();
        headers.insert(LOCATION, self.target.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        reply
    }
}

/// The connection's owner, if it can be determined.
async fn user_between(between: Option<(SocketAddr, SocketAddr)>) -> Option<u32> {
    let (peer, local) = between?;
    // The table has a line for each socket of the machine.
    spawn_blocking(move || peer_user::of(peer, local)).await.ok()?.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(lifetime: Duration) -> OneTimeLink {
        OneTimeLink::new(Token::random().unwrap(), HeaderValue::from_static("http://a/"), 1000, lifetime)
    }

    #[test]
    fn a_link_is_for_its_user_and_root_alone() {
        let link = link(LIFETIME);
        assert!(link.is_for(Some(1000)) && link.is_for(Some(0)));
        assert!(!link.is_for(Some(1001)) && !link.is_for(None));
    }

    #[test]
    fn only_its_whole_code_is_its_path() {
        let link = link(LIFETIME);
        let path = link.path();
        assert!(link.is_at(&path));
        let others =
            [&path[..path.len() - 1], &path[5..], "/open/", "", &format!("{path}/"), &format!("{path}a")];
        assert!(!others.into_iter().any(|other| link.is_at(other)));
        assert!(!link.is_at(&OneTimeLink::path(&self::link(LIFETIME))));
    }
}
