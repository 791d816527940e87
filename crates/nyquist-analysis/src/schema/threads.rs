//! Rows of threads, of processes, and of the parts of a time line.

use std::borrow::Cow;

use serde::Serialize;

use super::Rows;
use super::amounts::Totals;
use crate::query::groups;
use crate::query::timeline::{ThreadTimeline, Timeline};

/// A thread
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRow<'a> {
    /// Its handle, as `t-3`
    pub handle: String,
    /// Its name
    pub thread: &'a str,
    /// Its id
    pub tid: &'a str,
    /// The name of its process
    pub process: &'a str,
    /// The id of its process
    pub pid: &'a str,
    /// How many samples it has
    pub samples: u64,
    /// What it takes.
    #[serde(flatten)]
    pub totals: Totals,
}

/// A process, without its children
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRow<'a> {
    /// Its name
    pub process: &'a str,
    /// Its id
    pub pid: &'a str,
    /// How many threads it has
    pub threads: usize,
    /// How many samples it has
    pub samples: u64,
    /// When it began, since the beginning of the recording
    pub start_ns: u64,
    /// When it ended; null if it outlived the recording
    pub end_ns: Option<u64>,
    /// What it takes.
    #[serde(flatten)]
    pub totals: Totals,
}

/// A part of the recording
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelinePart<'a> {
    /// Its begin, since the beginning of the recording
    pub start_ns: u64,
    /// Its end
    pub end_ns: u64,
    /// How many CPUs were busy on average
    pub cpus: f64,
    /// The handle of the thread with the most CPU time in it, or null
    pub busiest_handle: Option<String>,
    /// The name of that thread, or null
    pub busiest_thread: Option<Cow<'a, str>>,
}

/// The handle of a thread, by which commands find it in the same file.
fn handle(thread: nyquist_profile::ThreadIndex) -> String {
    format!("t-{}", thread.index())
}

impl<'a> Rows<'a> {
    /// A thread.
    pub fn thread(&self, thread: &groups::ThreadRow<'a>) -> ThreadRow<'a> {
        ThreadRow {
            handle: handle(thread.thread),
            thread: thread.name,
            tid: thread.tid,
            process: &self.profile.process(thread.process).name,
            pid: thread.pid,
            samples: thread.samples,
            totals: self.whole.totals(thread.amount.weight),
        }
    }

    /// A process.
    pub fn process(&self, row: &groups::ProcessRow<'a>) -> ProcessRow<'a> {
        let process = self.profile.process(row.process);
        ProcessRow {
            process: row.name,
            pid: row.pid,
            threads: row.threads,
            samples: row.samples,
            start_ns: process.start,
            end_ns: process.end,
            totals: self.whole.totals(row.amount.weight),
        }
    }
}

impl<'a> TimelinePart<'a> {
    /// A part of so many of a time line.
    pub fn of(timeline: &Timeline<ThreadTimeline<'a>>, part: usize, parts: usize) -> Self {
        let length = timeline.end_ns.saturating_sub(timeline.start_ns) as f64 / parts.max(1) as f64;
        let used_by = |thread: &ThreadTimeline<'_>| thread.parts_ns.get(part).copied().unwrap_or(0);
        let used: u64 = timeline.rows.iter().map(used_by).sum();
        let busiest = timeline.rows.iter().max_by_key(|thread| used_by(thread)).filter(|_| used > 0);
        let start_ns = timeline.start_ns + (part as f64 * length) as u64;
        Self {
            start_ns,
            end_ns: start_ns + length as u64,
            cpus: (used as f64 / length.max(1.0) * 100.0).round() / 100.0,
            busiest_handle: busiest.map(|thread| handle(thread.thread)),
            busiest_thread: busiest.map(|thread| Cow::Borrowed(thread.name)),
        }
    }
}
