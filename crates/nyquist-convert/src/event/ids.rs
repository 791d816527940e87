//! The numbers of processes and threads.

/// A process's number in the recorder's own pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub u32);

/// A thread's number in the recorder's own pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u32);

/// The thread number that the kernel writes when a thread has released its number: -1. Its process keeps its
/// number as long as other threads live.
pub(crate) const RELEASED_TID: Tid = Tid(u32::MAX);
