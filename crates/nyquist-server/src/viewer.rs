//! What the server asks of a viewer that is served with the profile. The server knows nothing of what it shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::body::Bytes;

/// A viewer: the files of its page, and answers to what the page asks.
pub trait Viewer: Send + Sync {
    /// A file of the page, by its path below the token; the page itself is at the empty path. `front_end` is the address that
    /// opens the profile in the Firefox Profiler.
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset>;

    /// Answers a question. Called on a thread of its own, so that it may take its time. A query whose client
    /// has disconnected need not be answered.
    ///
    /// # Errors
    /// Where there is no such question, or its parameters cannot be understood.
    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<Answer, Refusal>;

    /// Shows another profile from now on: one of any format, as a client has sent it. Called as [`Viewer::answer`] is.
    ///
    /// # Errors
    /// Where it is none, or no other is shown here.
    fn open(&self, profile: Vec<u8>, query: &str) -> Result<Answer, Refusal> {
        let _ = (profile, query);
        Err(Refusal { status: 404, message: "no other profile is shown here".to_owned() })
    }

    /// Whether the profile that is shown is not the one that the server was given.
    fn shows_another(&self) -> bool {
        false
    }
}

/// A file of a viewer's page.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its media type.
    pub content_type: &'static str,
    /// What is the same for as long as the file is, with quotation marks (RFC 9110, section 8.8.3).
    pub etag: String,
    /// The file.
    pub plain: Bytes,
    /// The file, compressed with gzip.
    pub gzip: Bytes,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its media type.
    pub content_type: &'static str,
    /// The name under which a browser saves it, which then does not show it; `None` where it is for the page itself.
    pub file_name: Option<&'static str>,
    /// The answer.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer for the page, as JSON.
    pub fn json(body: Vec<u8>) -> Self {
        Self { content_type: "application/json", file_name: None, body }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status: 400 or 404, or 500 where the fault is ours.
    pub status: u16,
    /// What is wrong, as a sentence for people.
    pub message: String,
}

/// Whether the client that asked still waits.
#[derive(Clone, Debug, Default)]
pub struct Client(Arc<AtomicBool>);

impl Client {
    /// Whether it has disconnected.
    pub fn has_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Reports the disconnection when it is dropped.
    pub(crate) fn presence(&self) -> Presence {
        Presence(Arc::clone(&self.0))
    }
}

/// A client that waits for as long as this lives.
pub(crate) struct Presence(Arc<AtomicBool>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
