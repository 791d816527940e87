//! The event model: the events of every source of samples, on every platform.
//!
//! Events of one source may come in any order within the source's reordering window; the order stage sorts
//! them by time.

mod live_stack;
mod occurrence;
pub(crate) mod pre_unwound;
mod registers;
mod stated_image;
mod waiting;
mod wakeup;

use bytes::Bytes;
pub use live_stack::LiveStack;
use nyquist_object::{Avma, BuildId, FileOffset, MachUuid, PeCodeId};
use nyquist_profile::{CategoryColor, MarkerSchema};
pub use nyquist_profile::{CounterGraph, GraphColor};
pub use occurrence::{Occurrence, OccurrenceCounter, OccurrenceKind};
pub use pre_unwound::PreUnwound;
pub use registers::Registers;
pub use stated_image::StatedImage;
use std::sync::Arc;
pub use waiting::{WaitReason, Waiting};
pub use wakeup::Wakeup;

/// A point in time: nanoseconds of `CLOCK_MONOTONIC` (or the platform's clock of the same meaning).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A process's number in the recorder's own pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub u32);

/// A thread's number in the recorder's own pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u32);

/// The thread number that the kernel writes when a thread has released its number: -1. Its process keeps its
/// number as long as other threads live.
pub(crate) const RELEASED_TID: Tid = Tid(u32::MAX);

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
    /// A quantity has a value.
    Counter(Counter),
    /// The outer part of a thread's stack was read from its process's memory. It is shared with code that
    /// compares the next reading with it.
    LiveStack(Arc<LiveStack>),
}

/// A range of executable memory, and the file that is mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Whose, or `None` for the kernel's own address space.
    pub pid: Option<Pid>,
    /// The first address.
    pub start: Avma,
    /// The number of bytes.
    pub len: u64,
    /// Where in the file the first byte is.
    pub offset: FileOffset,
    /// The path as the process sees it, or a pseudo name: `[vdso]`, `//anon`, `[kernel.kallsyms]`.
    pub path: String,
    /// The file's identity, from the kernel.
    pub identity: MappedFile,
}

/// A mapped file's identity, from the kernel at the time of the mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum MappedFile {
    /// No identity: anonymous memory, or a source that does not know it.
    #[default]
    Unknown,
    /// The build id.
    BuildId(BuildId),
    /// The time and the size in the headers of an image of Windows, as they are in memory.
    Pe(PeCodeId),
    /// What a trace of Windows states of an image.
    Stated(Arc<StatedImage>),
    /// The id of an image of macOS, as it is in memory.
    MachO(MachUuid),
    /// The device and the inode.
    Inode {
        /// The device's major number.
        major: u32,
        /// The device's minor number.
        minor: u32,
        /// The inode.
        inode: u64,
        /// The inode's generation.
        generation: u64,
    },
}

/// One observation of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// Whether the thread was in the kernel when it was observed.
    pub in_kernel: bool,
    /// The thread's state, which determines what the sample stands for.
    pub state: SampleState,
    /// The CPU time that this sample stands for, in nanoseconds, if the thread's own clock has triggered it.
    /// If the profile counts events, it is the number of events.
    pub period_ns: u64,
    /// The CPU time that the thread has used since the counter was opened, in nanoseconds, user and kernel,
    /// for sources that count it. If [`Event::cpu`] is known, it is the thread's CPU time *on that CPU*, and
    /// each CPU counts from 0 for every thread. So the thread's CPU time since a former sample is the
    /// difference to its last value on the same CPU. Its whole time is the sum over the CPUs.
    pub cpu_time_ns: Option<u64>,
    /// Whether `cpu_time_ns` only counts since another event has taken over, and from 0 again on each CPU.
    pub counts_anew: bool,
    /// The kernel's part of the stack, innermost first: the instruction pointer, then return addresses. Empty
    /// if the thread was in user code, or if the source may not read the kernel's stack.
    pub kernel_stack: Vec<Avma>,
    /// The user's part of the stack.
    pub user: UserStack,
}

#[cfg(test)]
impl Sample {
    /// A sample of a process's first thread in user code, which the thread's clock has triggered. It stands
    /// for a millisecond.
    pub(crate) fn in_user_code(pid: Pid, user: UserStack) -> Self {
        Self {
            pid,
            tid: Tid(pid.0),
            in_kernel: false,
            state: SampleState::Clocked,
            period_ns: 1_000_000,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: Vec::new(),
            user,
        }
    }
}

/// The state of a thread when it was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleState {
    /// It ran, and its own clock of CPU time has triggered the sample.
    #[default]
    Clocked,
    /// The wall clock triggered the sample, and the thread ran.
    Running {
        /// How long it has waited, for any reason, since the last look at it, in nanoseconds.
        waited_ns: u64,
    },
    /// The wall clock triggered the sample. The thread has not run since the last look, because other threads
    /// had the CPUs.
    Runnable {
        /// How long it has waited since the last look at it, in nanoseconds.
        waited_ns: u64,
    },
    /// The wall clock triggered the sample, and the thread waited for something.
    Waiting {
        /// How long it has waited since the last look at it, in nanoseconds.
        waited_ns: u64,
        /// The kind of object that it waited for, if that is known.
        reason: Option<WaitReason>,
    },
}

/// The user's part of a stack: walked already, or the data to walk it.
#[derive(Clone, Debug, PartialEq)]
pub enum UserStack {
    /// No user stack: a kernel thread, or a thread whose memory was gone already.
    None,
    /// Walked by the source: the instruction pointer, then return addresses.
    Walked(Vec<Avma>),
    /// The same, shared by the samples of a thread that has not left the kernel between them.
    Shared(Arc<[Avma]>),
    /// Walked by the source through frame pointers. If code uses the register for something else, the chain
    /// leads to arbitrary memory. So the stack ends before the first address outside of code.
    FramePointers(Vec<Avma>),
    /// It cannot be unwound. This is its name.
    Named(&'static str),
    /// The registers at the entry to the kernel, and a copy of the stack's innermost bytes.
    Copied {
        /// The general registers.
        registers: Box<Registers>,
        /// The bytes from the stack pointer upwards.
        stack: Bytes,
        /// Whether the copy ends because its limit was reached, and not because the stack did.
        limited: bool,
    },
    /// Such a stack, walked ahead of the converter.
    PreUnwound(Box<PreUnwound>),
}

/// A point or an interval that has a name. [`Event::time`] is its time or, for an interval, the time of its
/// end.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// The process.
    pub pid: Pid,
    /// The track that shows it.
    pub track: Track,
    /// Its name.
    pub name: Arc<str>,
    /// Which part of an interval it is, if it is one.
    pub timing: MarkerTiming,
    /// The kind of marker, with the fields and their formats. Different kinds with the same name get a number
    /// behind the name.
    pub schema: Option<Arc<MarkerSchema>>,
    /// The values of the schema's fields, in the schema's order.
    pub values: Vec<FieldValue>,
    /// Its category, if it has one.
    pub category: Option<MarkerCategory>,
}

impl Marker {
    /// The thread that it is shown with. Markers on a track of the process are shown with the main thread.
    pub(crate) fn thread(&self) -> Tid {
        match self.track {
            Track::Thread(tid) => tid,
            Track::Named(_) => Tid(self.pid.0),
        }
    }
}

/// The track on which a marker is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Track {
    /// That of the thread it happened on.
    Thread(Tid),
    /// A track of the process that belongs to no thread, for things that threads share, such as an
    /// asynchronous task.
    Named(Arc<str>),
}

/// Which part of an interval a marker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerTiming {
    /// No interval, but a point in time.
    Instant,
    /// The whole, which ends at the event's time.
    Interval {
        /// When it began.
        start: Timestamp,
    },
    /// The begin of an interval whose end is a marker of the same name and track.
    IntervalStart,
    /// The end of such an interval.
    IntervalEnd,
}

/// The value of a marker's field. A value that does not fit the field's format is converted, or left out.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// The field has no value.
    Missing,
    /// Text.
    String(Arc<str>),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
}

/// A category of markers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MarkerCategory {
    /// Its name.
    pub name: Arc<str>,
    /// Its colour, if the profile does not have the category already.
    pub color: CategoryColor,
}

/// The value of a quantity of a process at the event's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Whose.
    pub pid: Pid,
    /// Which quantity.
    pub kind: Arc<CounterKind>,
    /// The absolute value. The converter computes the differences that the profile has. Values that are not
    /// finite are left out. A [rate's](CounterGraph::Rate) value only rises: one that is less than the one
    /// before counts from 0 again.
    pub value: f64,
}

/// A quantity that changes over time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CounterKind {
    /// Its name, unique in its process.
    pub name: String,
    /// The unit, such as `bytes`.
    pub unit: String,
    /// The kind of quantity, such as `Memory`. The Firefox Profiler knows some kinds, and draws counters by
    /// their kind in an old format.
    pub category: String,
    /// The description that users see.
    pub description: String,
    /// Whether the graph draws its value, or how fast it changes.
    pub graph: CounterGraph,
    /// The graph's colour.
    pub color: GraphColor,
    /// Its place among the counters of its process.
    pub order: i32,
    /// Whether it is useful only beside other data. Then it is left out of a process without samples and
    /// markers. It is also left out if its value never changes, unless it is memory.
    pub accompanies: bool,
}
