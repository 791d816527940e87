//! The event model: the events of every source of samples, on every platform.
//!
//! Events of one source may come in any order within the source's reordering window; the order stage sorts
//! them by time.

mod allocation;
mod counter;
mod ids;
mod live_stack;
mod mapping;
mod marker;
mod occurrence;
pub(crate) mod pre_unwound;
mod provided_image;
mod quota;
mod registers;
mod sample;
mod timestamp;
mod wait_reason;
mod waiting;
mod wakeup;

pub use allocation::{Allocation, Free, HeapContents, HeapId};
pub use counter::{Counter, CounterKind};
pub(crate) use ids::RELEASED_TID;
pub use ids::{Pid, Tid};
pub use live_stack::LiveStack;
pub use mapping::{MappedFile, Mapping};
pub use marker::{FieldValue, Marker, MarkerCategory, MarkerTiming, Track};
use nyquist_object::Avma;
pub use nyquist_profile::{CounterGraph, GraphColor};
pub use occurrence::{CounterValue, Occurrence, OccurrenceCounter, OccurrenceKind};
pub use pre_unwound::PreUnwound;
pub use provided_image::ProvidedImage;
pub use quota::quota_marker;
pub use registers::Registers;
pub use sample::{Sample, SampleState, UserStack};
use std::sync::Arc;
pub use timestamp::Timestamp;
pub use wait_reason::WaitReason;
pub use waiting::Waiting;
pub use wakeup::Wakeup;

/// Something that happened at a time, on a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub time: Timestamp,
    /// On which CPU, if that is known.
    pub cpu: Option<u32>,
    /// Its kind.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A thread was observed.
    Sample(Sample),
    /// A thread left the CPU, and this is its stack. It waits there until a [`SwitchIn`](Self::SwitchIn) or a
    /// sample shows that it is back. The sample's period and CPU time are not used.
    SwitchOut(Sample),
    /// A thread came to a CPU.
    SwitchIn {
        /// The thread.
        tid: Tid,
    },
    /// A thread left the CPU, and its stack is not known.
    Descheduled {
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Whether it could have run on, and was not waiting for anything.
        preempted: bool,
    },
    /// A thread was found waiting, off its CPU.
    Waiting(Box<Waiting>),
    /// A thread is about to leave its CPU to wait, and this is its stack with the kernel's part.
    /// [`Descheduled`](Self::Descheduled) follows. The sample's period and CPU time are not used. Sources may
    /// leave out the stacks of most switches.
    SwitchStack(Sample),
    /// A thread was made ready to run.
    Wakeup(Box<Wakeup>),
    /// Code was mapped into a process.
    Map(Mapping),
    /// Part of an address space was unmapped.
    Unmap {
        /// Whose.
        pid: Pid,
        /// The first address.
        start: Avma,
        /// The number of bytes.
        len: u64,
    },
    /// Code of the kernel appeared while it ran, such as a BPF program.
    KernelCode {
        /// The first address.
        start: Avma,
        /// The number of bytes.
        len: u64,
        /// The name of the function that it is.
        name: String,
    },
    /// Such code was removed. For code from before the recording, this is its first event.
    KernelCodeGone {
        /// The first address.
        start: Avma,
        /// The number of bytes.
        len: u64,
        /// The name of the function that it was.
        name: String,
    },
    /// A thread was born. If `pid` differs from `parent_pid`, a process was born, with the mappings of its
    /// parent.
    Fork {
        /// The process of the new thread.
        pid: Pid,
        /// The new thread.
        tid: Tid,
        /// The process that it was born from.
        parent_pid: Pid,
        /// The thread that it was born from.
        parent_tid: Tid,
    },
    /// A thread (its main thread: the process) took a name.
    Name {
        /// Whose.
        pid: Pid,
        /// Whose.
        tid: Tid,
        /// The name; bytes that are not UTF-8 are kept as the replacement character.
        name: String,
        /// Whether the name came by `exec`: the address space is a new one.
        exec: bool,
    },
    /// A thread ended.
    Exit {
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
    },
    /// The CPU time that a thread had used when it ended or when the source stopped, for sources that count
    /// apart from sampling. Its counter is that of [`Sample::cpu_time_ns`]. If [`Event::cpu`] is known, it
    /// counts on that CPU alone.
    Total {
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// CPU time since the counter was opened, in nanoseconds, user and kernel.
        cpu_time_ns: u64,
    },
    /// The CPU time of everything that was recorded, by the source's counters, at the end. If a recording has
    /// several runs, each run has one.
    TotalInAll {
        /// CPU time in nanoseconds, user and kernel.
        cpu_time_ns: u64,
    },
    /// The source dropped records because its buffer was full, since the last sample on the CPU.
    Lost {
        /// How many.
        records: u64,
    },
    /// The source dropped this many records in all on the CPU, or on unknown CPUs, as one of its counters
    /// reports at the end. The records of [`Lost`](Self::Lost) events are included.
    LostInAll {
        /// How many.
        records: u64,
    },
    /// Nothing is sampled from now on, on the user's request. Mappings, names, births and ends of threads are still
    /// reported, and totals leave the time of the pause out.
    Paused,
    /// The pause is over.
    Resumed,
    /// The kernel stopped sampling on the CPU, for the rest of a tick, because sampling took too long.
    Throttled,
    /// The kernel samples on the CPU again.
    Unthrottled,
    /// The program itself, or a tool that watches it, marked a point or an interval.
    Marker(Box<Marker>),
    /// A requested event happened on a thread.
    Occurrence(Box<Occurrence>),
    /// The source dropped occurrences because its buffer was full.
    OccurrencesLost {
        /// How many.
        records: u64,
    },
    /// A block of memory was allocated.
    Allocation(Box<Allocation>),
    /// A block was freed.
    Free(Free),
    /// What a heap consists of.
    HeapContents(Box<HeapContents>),
    /// A quantity has a value.
    Counter(Counter),
    /// The outer part of a thread's stack was read from its process's memory. It is shared with code that
    /// compares the next reading with it.
    LiveStack(Arc<LiveStack>),
    /// A process denies access to its memory, so the outer parts of its threads' stacks cannot be read.
    MemoryDenied {
        /// The process.
        pid: Pid,
    },
}
