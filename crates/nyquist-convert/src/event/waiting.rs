//! A thread that was found waiting: where it waits, and for which object.

use std::sync::Arc;

use super::ids::Tid;
use super::sample::Sample;
use super::wait_reason::WaitReason;

/// A thread that was found waiting. It waits from the time when it left its CPU until it is back on one.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The thread, and its stack. The sample's period and CPU time are not used.
    pub sample: Sample,
    /// The kind of object that it waits for. `None` if it waits for none: it waits for a CPU, or the reason that
    /// is known already stays.
    pub reason: Option<WaitReason>,
    /// The thread that holds the lock, if that is known.
    pub holder: Option<Tid>,
    /// The time since the previous look at the thread, in nanoseconds. Shorter waits are seen by chance, and
    /// each moment of them is equally likely.
    pub checked_before_ns: u64,
    /// The object, if it is known: the path of a file, `socket:[123]`, the address of a futex. The recorded
    /// process controls this text.
    pub object: Option<Arc<str>>,
}
