//! The built-in viewer: a page in the browser, and the responses to its requests.
//!
//! The page (`assets/`) computes nothing. It sends requests about a selection of the profile, and the size
//! of each response is bounded by that of a screen. The requests are documented in
//! `docs/reference/http-api.md`.
//!
//! A separate thread owns the profile and the data computed from it once. It handles one request at a
//! time, each with all CPUs. It starts when the page is requested, or with [`BuiltinViewer::begin`],
//! because many users view the profile in another front end.

#![forbid(unsafe_code)]

mod answer;
mod answers;
mod assets;
mod bundle;
mod cache;
mod errors;
mod files;
mod function_table;
mod live;
mod measures;
mod page_file;
mod parameters;
mod progress;
mod selection;
mod translation;
mod viewed_profile;
mod worker;

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nyquist_profile::Profile;
use nyquist_server::{Asset, Client, SymbolSource, Viewer, ViewerError, ViewerResponse};

pub use crate::live::ProfileFeed;

use crate::errors::bad_request;
use crate::parameters::Parameters;
use crate::progress::Progress;
use crate::viewed_profile::{FileNames, ViewedProfile};
use crate::worker::{OpenedProfile, Worker};

/// The maximum length of the name of an opened file, in characters.
const MAX_FILE_NAME: usize = 300;

/// The built-in viewer of a profile, or of a running recording.
#[derive(Debug)]
pub struct BuiltinViewer {
    worker: Arc<Worker>,
    /// For a running recording.
    progress: Option<Arc<Progress>>,
    /// The reader of other profiles, if they can be opened.
    reader: Option<ProfileReader>,
    shows_another: AtomicBool,
}

/// Reads a profile of any format. If it is no profile, returns a message about that.
pub type ReadProfile = dyn Fn(Vec<u8>) -> Result<Profile, String> + Send + Sync;

struct ProfileReader(Box<ReadProfile>);

impl fmt::Debug for ProfileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProfileReader")
    }
}

impl BuiltinViewer {
    /// A viewer of `profile`, which gets source and instructions from `symbols`.
    pub fn new(profile: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self::of(ViewedProfile::new(profile), symbols)
    }

    /// A viewer of `after`, which compares it with `before`, a run of the same program.
    pub fn comparing(before: Profile, after: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self::of(ViewedProfile { before: Some(before), ..ViewedProfile::new(after) }, symbols)
    }

    fn of(subject: ViewedProfile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self::answering(Arc::new(Worker::new(subject, symbols, None)), None)
    }

    fn answering(worker: Arc<Worker>, progress: Option<Arc<Progress>>) -> Self {
        Self { worker, progress, reader: None, shows_another: AtomicBool::new(false) }
    }

    /// The same viewer, which also shows the names of the files: that of the profile, and that of the run before.
    #[must_use]
    pub fn named(self, file: Option<String>, before: Option<String>) -> Self {
        self.worker.name(FileNames { shown: file, before });
        self
    }

    /// The same viewer, which also opens profiles sent by a client, using `read`.
    #[must_use]
    pub fn opening(self, read: Box<ReadProfile>) -> Self {
        Self { reader: Some(ProfileReader(read)), ..self }
    }

    /// Starts computing the data for all responses, for a page that will be opened.
    pub fn begin(&self) {
        self.worker.begin();
    }

    /// A viewer of a recording that has only the description in `profile` so far, and the feed that
    /// provides further profiles.
    pub fn live(profile: Profile, symbols: Arc<dyn SymbolSource>) -> (Self, ProfileFeed) {
        let progress = Arc::new(Progress::default());
        let subject = ViewedProfile { until_ns: Some(0), ..ViewedProfile::new(profile) };
        let worker = Arc::new(Worker::new(subject, symbols, Some(Arc::clone(&progress))));
        let feed = ProfileFeed::new(Arc::clone(&worker), Arc::clone(&progress));
        (Self::answering(worker, Some(progress)), feed)
    }
}

impl Viewer for BuiltinViewer {
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset> {
        if path.is_empty() {
            // It computes while the page is transferred and starts.
            self.worker.begin();
        }
        assets::find(path, front_end)
    }

    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<ViewerResponse, ViewerError> {
        match &self.progress {
            // This request is frequent, and must not wait for others.
            Some(progress) if question == "live" => progress.answer(query),
            _ => self.worker.ask(question, query, client),
        }
    }

    fn open(&self, profile: Vec<u8>, query: &str) -> Result<ViewerResponse, ViewerError> {
        let Some(ProfileReader(read)) = &self.reader else {
            return Err(bad_request("a recording is shown here, and no other profile"));
        };
        let parameters = Parameters::parse(query);
        let file = parameters.get("name").map(|name| name.chars().take(MAX_FILE_NAME).collect());
        let profile = Box::new(read(profile).map_err(bad_request)?);
        self.worker.open(OpenedProfile { profile, file, compares: parameters.is_set("compare") });
        self.shows_another.store(true, Ordering::Relaxed);
        Ok(ViewerResponse::json(b"{}".to_vec()))
    }

    fn shows_another(&self) -> bool {
        self.shows_another.load(Ordering::Relaxed)
    }
}

/// Writes a page that shows a whole profile without a server and without a network: the CPU time, or the
/// waiting time if there is no CPU time. It contains the timeline, the flame graph and the call tree down
/// to boxes of 0.005 % of the whole, the functions with most time, and the first markers. O(profile).
///
/// # Errors
/// If writing to `out` fails.
pub fn write_page(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    page_file::write_whole(profile, out)
}

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
