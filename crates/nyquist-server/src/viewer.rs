//! The interface of a viewer that is served with the profile. The server does not know its contents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::body::Bytes;

/// A viewer: the files of its page, and responses to the page's requests.
pub trait Viewer: Send + Sync {
    /// A file of the page, by its path below the token; the page itself has the empty path. `front_end` is
    /// the address that opens the profile in the Firefox Profiler.
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset>;

    /// Handles a request. Called on a separate thread, so that it may take long. A request whose client
    /// has disconnected need not be handled.
    ///
    /// # Errors
    /// If the request does not exist, or its parameters are invalid.
    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<ViewerResponse, ViewerError>;

    /// Shows another profile from now on, in any format, as sent by a client. Called in the same way as
    /// [`Viewer::answer`].
    ///
    /// # Errors
    /// If it is not a profile, or this viewer cannot open another one.
    fn open(&self, profile: Vec<u8>, query: &str) -> Result<ViewerResponse, ViewerError> {
        let _ = (profile, query);
        Err(ViewerError { status: 404, message: "no other profile is shown here".to_owned() })
    }

    /// Whether the shown profile is not the one that the server was started with.
    fn shows_another(&self) -> bool {
        false
    }
}

/// A file of a viewer's page.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its media type.
    pub content_type: &'static str,
    /// A text that identifies the contents of the file, with quotation marks (RFC 9110, section 8.8.3).
    pub etag: String,
    /// The file.
    pub plain: Bytes,
    /// The file, compressed with gzip.
    pub gzip: Bytes,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewerResponse {
    /// Its media type.
    pub content_type: &'static str,
    /// The name for saving it in a browser, which then does not show it; `None` if it is for the page itself.
    pub file_name: Option<&'static str>,
    /// The response body.
    pub body: Vec<u8>,
}

impl ViewerResponse {
    /// A response for the page, as JSON.
    pub fn json(body: Vec<u8>) -> Self {
        Self { content_type: "application/json", file_name: None, body }
    }
}

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewerError {
    /// The HTTP status: 400 or 404, or 500 for an internal error.
    pub status: u16,
    /// The error message, as a sentence for users.
    pub message: String,
}

/// Whether the client of a request still waits.
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

/// A client that waits as long as this exists.
pub(crate) struct Presence(Arc<AtomicBool>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
