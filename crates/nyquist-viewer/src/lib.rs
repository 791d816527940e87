//! The built-in viewer: a page in the browser, and the answers to its questions.
//!
//! The page (`assets/`) computes nothing: it asks questions about a selection of the profile, and each answer
//! is bounded by the size of a screen. The questions are described in `docs/reference/http-api.md`.
//!
//! A thread of its own owns the profile and the data that are computed from it once. It answers one question
//! after another, each with all CPUs. It begins when the page is asked for, or with [`BuiltinViewer::begin`],
//! because many people look at the profile elsewhere.

#![forbid(unsafe_code)]

mod answer;
mod answers;
mod assets;
mod bundle;
mod cache;
mod files;
mod function_table;
mod live;
mod page_file;
mod parameters;
mod progress;
mod refusal;
mod selection;
mod translation;
mod worker;

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nyquist_profile::Profile;
use nyquist_server::{Answer, Asset, Client, Refusal, SymbolSource, Viewer};

pub use crate::live::ProfileFeed;

use crate::parameters::Parameters;
use crate::progress::Progress;
use crate::refusal::bad_request;
use crate::worker::{Subject, Worker};

/// The built-in viewer of a profile, or of a recording that goes on.
#[derive(Debug)]
pub struct BuiltinViewer {
    worker: Arc<Worker>,
    /// Of a recording that goes on.
    progress: Option<Arc<Progress>>,
    /// The reader of other profiles, if they are shown.
    reader: Option<Reader>,
    shows_another: AtomicBool,
}

/// Reads a profile of any format. If it is no profile, returns a sentence about that.
pub type ReadProfile = dyn Fn(Vec<u8>) -> Result<Profile, String> + Send + Sync;

struct Reader(Box<ReadProfile>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl BuiltinViewer {
    /// A viewer of `profile`, which asks `symbols` for source and instructions.
    pub fn new(profile: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self::of(Subject { profile, before: None, until_ns: None }, symbols)
    }

    /// A viewer of `after`, which compares it with `before`, a run of the same program.
    pub fn comparing(before: Profile, after: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self::of(Subject { profile: after, before: Some(before), until_ns: None }, symbols)
    }

    fn of(subject: Subject, symbols: Arc<dyn SymbolSource>) -> Self {
        Self::answering(Arc::new(Worker::new(subject, symbols, None)), None)
    }

    fn answering(worker: Arc<Worker>, progress: Option<Arc<Progress>>) -> Self {
        Self { worker, progress, reader: None, shows_another: AtomicBool::new(false) }
    }

    /// The same, which also shows profiles that a client sends, as `read` reads them.
    #[must_use]
    pub fn opening(self, read: Box<ReadProfile>) -> Self {
        Self { reader: Some(Reader(read)), ..self }
    }

    /// Begins to compute the data of all answers, for a page that will be opened.
    pub fn begin(&self) {
        self.worker.begin();
    }

    /// A viewer of a recording that has only the description in `profile` so far, and the feed that gives it
    /// profiles.
    pub fn live(profile: Profile, symbols: Arc<dyn SymbolSource>) -> (Self, ProfileFeed) {
        let progress = Arc::new(Progress::default());
        let subject = Subject { profile, before: None, until_ns: Some(0) };
        let worker = Arc::new(Worker::new(subject, symbols, Some(Arc::clone(&progress))));
        let feed = ProfileFeed::new(Arc::clone(&worker), Arc::clone(&progress));
        (Self::answering(worker, Some(progress)), feed)
    }
}

impl Viewer for BuiltinViewer {
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset> {
        if path.is_empty() {
            // It works while the page is on its way and begins.
            self.worker.begin();
        }
        assets::find(path, front_end)
    }

    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<Answer, Refusal> {
        match &self.progress {
            // It is asked often, and waits for no other answer.
            Some(progress) if question == "live" => progress.answer(query),
            _ => self.worker.ask(question, query, client),
        }
    }

    fn open(&self, profile: Vec<u8>, query: &str) -> Result<Answer, Refusal> {
        let Some(Reader(read)) = &self.reader else {
            return Err(bad_request("a recording is shown here, and no other profile"));
        };
        let compares = Parameters::parse(query).is_set("compare");
        self.worker.open(read(profile).map_err(bad_request)?, compares);
        self.shows_another.store(true, Ordering::Relaxed);
        Ok(Answer::json(b"{}".to_vec()))
    }

    fn shows_another(&self) -> bool {
        self.shows_another.load(Ordering::Relaxed)
    }
}

/// Writes a page that shows a whole profile without a server and without a network: the CPU time, or the
/// waiting if there is no CPU time. It has the timeline, the flame graph and the call tree down to boxes of
/// 0.005 % of the whole, the functions with most time, and the first markers. O(profile).
///
/// # Errors
/// Where `out` takes no more.
pub fn write_page(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    page_file::write_whole(profile, out)
}
