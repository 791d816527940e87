//! The built-in viewer: a page in the browser, and the answers to what it asks.
//!
//! The page (`assets/`) computes nothing: it asks questions about a selection of the profile, and each answer is bounded by
//! what fits on a screen. The questions are described in `docs/reference/http-api.md`.
//!
//! A thread of its own owns the profile and what is worked out of it once. It answers one question after another, each with all
//! CPUs. It begins when the first question comes, because many people look at the profile elsewhere.

#![forbid(unsafe_code)]

mod answers;
mod assets;
mod cache;
mod function_table;
mod live;
mod page_file;
mod parameters;
mod refusal;
mod selection;
mod translation;
mod worker;

use std::io::{self, Write};
use std::sync::Arc;

use nyquist_profile::Profile;
use nyquist_server::{Answer, Asset, Client, Refusal, SymbolSource, Viewer};

pub use crate::live::ProfileFeed;

use crate::live::Progress;
use crate::worker::{Subject, Worker};

/// The built-in viewer of a profile, or of a recording that goes on.
#[derive(Debug)]
pub struct BuiltinViewer {
    worker: Arc<Worker>,
    /// Of a recording that goes on.
    progress: Option<Arc<Progress>>,
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
        Self { worker: Arc::new(Worker::new(subject, symbols, None)), progress: None }
    }

    /// A viewer of a recording, of which there is nothing yet but what `profile` says of it, and what gives it its profiles.
    pub fn live(profile: Profile, symbols: Arc<dyn SymbolSource>) -> (Self, ProfileFeed) {
        let progress = Arc::new(Progress::default());
        let subject = Subject { profile, before: None, until_ns: Some(0) };
        let worker = Arc::new(Worker::new(subject, symbols, Some(Arc::clone(&progress))));
        let feed = ProfileFeed::new(Arc::clone(&worker), Arc::clone(&progress));
        (Self { worker, progress: Some(progress) }, feed)
    }
}

impl Viewer for BuiltinViewer {
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset> {
        assets::find(path, front_end)
    }

    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<Answer, Refusal> {
        match &self.progress {
            // It is asked often, and waits for no other answer.
            Some(progress) if question == "live" => progress.answer(query),
            _ => self.worker.ask(question, query, client),
        }
    }
}

/// Writes a page that shows a whole profile without a server and without a network: the CPU time, or the waiting where there is
/// nothing else. It has the timeline, the flame graph and the call tree down to boxes of 0.005 % of the whole, the functions with
/// most time, and the first markers. O(profile).
///
/// # Errors
/// Where `out` takes no more.
pub fn write_page(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    page_file::write_whole(profile, out)
}
