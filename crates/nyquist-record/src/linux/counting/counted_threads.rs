//! What the threads of a command have counted, each by itself.

use std::path::PathBuf;

use super::counters::Reading;
use super::thread_account::ThreadAccount;

/// The counts of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadCounts {
    /// Its process.
    pub pid: u32,
    /// Its number. A later thread can have the same one.
    pub tid: u32,
    /// The name that it had in the end.
    pub name: String,
    /// What its counters say, in the order of the events.
    pub readings: Vec<Reading>,
    /// What the kernel has counted of it by itself.
    pub account: Option<ThreadAccount>,
}

/// The counts of all threads of a command.
#[derive(Debug, Default)]
pub struct CountedThreads {
    /// The threads, as they were born.
    pub threads: Vec<ThreadCounts>,
    /// How many further threads were not counted, because they were too many.
    pub not_counted: u64,
    /// The programs that ran without the privileges that their files give, because they were traced.
    pub lost_privileges: Vec<PathBuf>,
}
