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
mod parameters;
mod refusal;
mod selection;
mod worker;

use std::sync::Arc;

use nyquist_profile::Profile;
use nyquist_server::{Asset, Client, Refusal, SymbolSource, Viewer};

use crate::worker::Worker;

/// The built-in viewer of a profile.
#[derive(Debug)]
pub struct BuiltinViewer {
    worker: Worker,
}

impl BuiltinViewer {
    /// A viewer of `profile`, which asks `symbols` for source and instructions.
    pub fn new(profile: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self { worker: Worker::new(profile, symbols) }
    }
}

impl Viewer for BuiltinViewer {
    fn asset(&self, path: &str, front_end: &str) -> Option<Asset> {
        assets::find(path, front_end)
    }

    fn answer(&self, question: &str, query: &str, client: &Client) -> Result<Vec<u8>, Refusal> {
        self.worker.ask(question, query, client)
    }
}
