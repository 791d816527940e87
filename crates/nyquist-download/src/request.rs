//! One HTTP request on a separate thread, which reports the received data. A caller may stop waiting at any
//! time. The thread then ends when the server sends something, or at its timeout.

use std::io::Read as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// The number of bytes in one event.
const CHUNK: usize = 128 << 10;

/// The maximum number of redirects.
const MAX_REDIRECTS: u32 = 8;

/// The maximum size of a response header.
const MAX_HEAD: usize = 64 << 10;

/// An event of a request.
#[derive(Debug)]
pub(crate) enum RequestEvent {
    /// The server has the file, of this size if it is known. No more events follow before the caller
    /// continues.
    Found(Option<u64>),
    /// Some bytes of the file.
    Bytes(Vec<u8>),
    /// The file is complete.
    End,
    /// The request failed.
    Failed(FetchError),
}

/// The reason why a server does not send a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FetchError {
    /// The file does not exist (404).
    NotFound,
    /// It is larger than requested (406, as used by debuginfod).
    TooLarge,
    /// The server responded with another status.
    Status(u16),
    /// The server cannot be reached or used. Requests for other files would fail, too.
    Unreachable(String),
    /// The connection broke, or the response is invalid.
    Broken(String),
}

/// A client whose requests end if no data arrives for `timeout`.
pub(crate) fn agent(timeout: Option<Duration>) -> Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(MAX_REDIRECTS)
        .max_response_header_size(MAX_HEAD)
        .user_agent(concat!("nyquist/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(timeout)
        .timeout_connect(timeout)
        .timeout_recv_response(timeout)
        .timeout_per_read(timeout)
        .build();
    Agent::new_with_config(config)
}

/// Requests a file. The events contain `number`. After [`RequestEvent::Found`] the thread waits until a message
/// is sent to the returned sender, and ends when that is dropped.
pub(crate) fn start(
    agent: &Agent,
    url: &str,
    headers: &[(String, String)],
    number: usize,
    events: SyncSender<(usize, RequestEvent)>,
) -> SyncSender<()> {
    let (go, may_go) = sync_channel(1);
    let mut request = agent.get(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let run = move || {
        // Sending fails if no caller waits any more.
        let send = |event| events.send((number, event)).is_ok();
        match request.call() {
            Ok(response) => {
                let _ = forward(response, &may_go, &send);
            }
            Err(error) => {
                send(RequestEvent::Failed(denied(&error)));
            }
        }
    };
    // If no thread can be started, the closure with the sender is dropped, which looks like a request without
    // a response.
    let _ = thread::Builder::new().name("download".to_owned()).spawn(run);
    go
}

/// Passes on a response; `None` if no caller waits for it.
fn forward(
    response: Response<Body>,
    may_go: &Receiver<()>,
    send: &impl Fn(RequestEvent) -> bool,
) -> Option<()> {
    let refused = match response.status().as_u16() {
        200 => None,
        404 | 410 => Some(FetchError::NotFound),
        406 | 413 => Some(FetchError::TooLarge),
        status => Some(FetchError::Status(status)),
    };
    if let Some(denied) = refused {
        send(RequestEvent::Failed(denied));
        return None;
    }
    let declared = response.body().content_length();
    let size = declared.or_else(|| header_number(response.headers(), "x-debuginfod-size"));
    send(RequestEvent::Found(size)).then_some(())?;
    may_go.recv().ok()?;
    let mut reader = response.into_body().into_reader();
    let mut received = 0;
    loop {
        let mut bytes = vec![0; CHUNK];
        match reader.read(&mut bytes) {
            Ok(0) if declared.is_some_and(|declared| declared != received) => {
                send(RequestEvent::Failed(FetchError::Broken("the answer was cut".to_owned())));
                return None;
            }
            Ok(0) => return send(RequestEvent::End).then_some(()),
            Ok(len) => {
                bytes.truncate(len);
                received += len as u64;
                send(RequestEvent::Bytes(bytes)).then_some(())?;
            }
            Err(error) => {
                send(RequestEvent::Failed(FetchError::Broken(error.to_string())));
                return None;
            }
        }
    }
}

fn header_number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn denied(error: &ureq::Error) -> FetchError {
    use ureq::Error;
    match error {
        Error::Timeout(_) | Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) => {
            FetchError::Unreachable(error.to_string())
        }
        Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            FetchError::Unreachable(io.to_string())
        }
        Error::Rustls(_) | Error::Tls(_) => FetchError::Unreachable(error.to_string()),
        other => FetchError::Broken(other.to_string()),
    }
}
