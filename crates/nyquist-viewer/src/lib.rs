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

use crate::worker::{Subject, Worker};

/// The built-in viewer of a profile.
#[derive(Debug)]
pub struct BuiltinViewer {
    worker: Worker,
}

impl BuiltinViewer {
    /// A viewer of `profile`, which asks `symbols` for source and instructions.
    pub fn new(profile: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self { worker: Worker::new(Subject { profile, before: None }, symbols) }
    }

    /// A viewer of `after`, which compares it with `before`, a run of the same program.
    pub fn comparing(before: Profile, after: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self { worker: Worker::new(Subject { profile: after, before: Some(before) }, symbols) }
    }
}

impl Viewer for BuiltinViewer {
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset> {
        assets::find(path, front_end)
    }

    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<Answer, Refusal> {
        self.worker.ask(question, query, client)
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
