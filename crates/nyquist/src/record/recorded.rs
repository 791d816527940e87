//! What a recording hands on when it has ended.

use crate::failure::Failure;
use crate::record::summary::Course;
use nyquist_convert::Finished;
use std::time::Duration;

/// The result of the recording.
pub(crate) struct Recorded {
    /// The profile without names, and what was counted.
    pub(crate) finished: Finished,
    /// How it went.
    pub(crate) course: Course,
    /// The names of the events beside the samples.
    pub(crate) events: Vec<String>,
    /// The exit status of this program, if nothing fails from now on.
    pub(crate) status: u8,
    /// The command's CPU time in all runs by the kernel's accounting, if all of it was to be recorded.
    pub(crate) used: Option<Duration>,
    /// The processes that the command left running.
    pub(crate) living: Vec<u32>,
    /// The command lines of the attached processes.
    pub(crate) command_lines: String,
    /// Whether the recorder could read all processes.
    pub(crate) may_look_into_others: bool,
    /// The reason why the kernel's records could not be kept, if they were to be.
    pub(crate) not_kept: Option<Failure>,
}
