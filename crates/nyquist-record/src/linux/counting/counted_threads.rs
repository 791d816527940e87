//! The counts of the threads of a command, each by itself.

use std::path::PathBuf;

use super::counters::EventReading;
use super::thread_account::ThreadAccount;

/// The counts of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadCounts {
    /// Its process.
    pub pid: u32,
    /// Its thread id, which a later thread can reuse.
    pub tid: u32,
    /// Its last name.
    pub name: String,
    /// The readings of its counters, in the order of the events.
    pub readings: Vec<EventReading>,
    /// The kernel's own counts for it.
    pub account: Option<ThreadAccount>,
}

/// The counts of all threads of a command.
#[derive(Debug, Default)]
pub struct CountedThreads {
    /// The threads in order of birth.
    pub threads: Vec<ThreadCounts>,
    /// How many further threads were not counted, because there were too many.
    pub not_counted: u64,
    /// The programs that ran without the privileges that their files give, because they were traced.
    pub lost_privileges: Vec<PathBuf>,
}
