//! The messages of Perfetto's traces, as far as they are used
//! (<https://github.com/google/perfetto/blob/main/protos/perfetto/trace/trace_packet.proto> and what it
//! imports).

use prost::{Message, Oneof};

use super::stack_sample_message::{CounterDescriptor, StackSample, StackSampleDefaults, TaskContext};

/// The field of `Trace` that has the packets.
pub(super) const PACKET: u64 = 1;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Packet {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, tag = "58")]
    pub clock: u32,
    #[prost(uint32, tag = "10")]
    pub sequence: u32,
    #[prost(uint32, tag = "13")]
    pub sequence_flags: u32,
    #[prost(bool, tag = "41")]
    pub state_cleared: bool,
    #[prost(message, optional, tag = "12")]
    pub interned: Option<InternedData>,
    #[prost(message, optional, tag = "59")]
    pub defaults: Option<Defaults>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clocks: Option<ClockSnapshot>,
    #[prost(message, optional, tag = "11")]
    pub event: Option<TrackEvent>,
    #[prost(message, optional, tag = "43")]
    pub process: Option<Process>,
    #[prost(message, optional, tag = "44")]
    pub thread: Option<Thread>,
    #[prost(message, optional, tag = "54")]
    pub streaming: Option<StreamingProfile>,
    #[prost(message, optional, tag = "60")]
    pub track: Option<Track>,
    #[prost(message, optional, tag = "66")]
    pub sample: Option<PerfSample>,
    #[prost(message, optional, tag = "135")]
    pub stack_sample: Option<StackSample>,
    /// Packets that are compressed with zlib.
    #[prost(bytes = "vec", tag = "50")]
    pub compressed: Vec<u8>,
}

/// `InternedData`: the data that later packets of the sequence refer to.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub categories: Vec<InternedString>,
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "3")]
    pub annotation_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "29")]
    pub annotation_values: Vec<InternedString>,
    #[prost(message, repeated, tag = "16")]
    pub build_ids: Vec<InternedString>,
    #[prost(message, repeated, tag = "17")]
    pub mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "18")]
    pub source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "5")]
    pub function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "6")]
    pub frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "48")]
    pub tasks: Vec<TaskContext>,
    #[prost(message, repeated, tag = "50")]
    pub counters: Vec<CounterDescriptor>,
}

/// `InternedString`, `EventName` and others with the same fields.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InternedString {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub text: Vec<u8>,
}

/// `Mapping`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub build_id: u64,
    #[prost(uint64, tag = "4")]
    pub start: u64,
    #[prost(uint64, tag = "5")]
    pub end: u64,
    /// The parts of the path.
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub path: Vec<u64>,
}

/// `Frame`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Frame {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub function_name: u64,
    #[prost(uint64, tag = "3")]
    pub mapping: u64,
    /// The address as the file states it.
    #[prost(uint64, optional, tag = "4")]
    pub address: Option<u64>,
    #[prost(uint64, tag = "5")]
    pub source_path: u64,
    #[prost(uint32, tag = "6")]
    pub line: u32,
}

/// `Callstack`: frames, the outermost first.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub frames: Vec<u64>,
}

/// `TracePacketDefaults`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Defaults {
    #[prost(uint32, tag = "58")]
    pub clock: u32,
    #[prost(message, optional, tag = "11")]
    pub event: Option<EventDefaults>,
    #[prost(message, optional, tag = "12")]
    pub sample: Option<SampleDefaults>,
    #[prost(message, optional, tag = "100")]
    pub stack_sample: Option<StackSampleDefaults>,
}

/// `TrackEventDefaults`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct EventDefaults {
    #[prost(uint64, tag = "11")]
    pub track: u64,
}

/// `PerfSampleDefaults`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub timebase: Option<Timebase>,
}

/// `PerfEvents.Timebase`: how often samples are taken.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Timebase {
    #[prost(uint64, tag = "1")]
    pub period: u64,
    #[prost(uint64, tag = "2")]
    pub frequency: u64,
    #[prost(uint32, tag = "4")]
    pub counter: u32,
    #[prost(bytes = "vec", tag = "10")]
    pub name: Vec<u8>,
}

/// `ProcessTree`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<TreeProcess>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<TreeThread>,
}

/// `ProcessTree.Process`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TreeProcess {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub command: Vec<Vec<u8>>,
}

/// `ProcessTree.Thread`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TreeThread {
    #[prost(int32, tag = "1")]
    pub tid: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub pid: i32,
}

/// `ClockSnapshot`: the values of several clocks at one time.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(uint32, tag = "2")]
    pub primary: u32,
}

/// `ClockSnapshot.Clock`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Clock {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(uint64, tag = "2")]
    pub time: u64,
    /// Whether each packet's time is relative to the previous packet.
    #[prost(bool, tag = "3")]
    pub is_incremental: bool,
    #[prost(uint64, tag = "4")]
    pub unit_ns: u64,
}

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Track {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "5")]
    pub parent: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<Process>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<Thread>,
}

/// `ProcessDescriptor`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Process {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub command: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "6")]
    pub name: Vec<u8>,
}

/// `ThreadDescriptor`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Thread {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int64, tag = "2")]
    pub tid: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub name: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub reference_us: i64,
}

/// `StreamingProfilePacket`: stacks of the sequence's thread, each with the time since the previous one.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StreamingProfile {
    #[prost(uint64, repeated, packed = "false", tag = "1")]
    pub callstacks: Vec<u64>,
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub deltas_us: Vec<i64>,
}

/// `PerfSample`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PerfSample {
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    #[prost(uint32, tag = "3")]
    pub tid: u32,
    #[prost(uint64, tag = "4")]
    pub callstack: u64,
    #[prost(uint32, tag = "5")]
    pub cpu_mode: u32,
    #[prost(uint64, tag = "17")]
    pub lost: u64,
    #[prost(uint32, tag = "18")]
    pub skipped: u32,
}

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub category_ids: Vec<u64>,
    #[prost(bytes = "vec", repeated, tag = "22")]
    pub categories: Vec<Vec<u8>>,
    #[prost(uint64, tag = "10")]
    pub name_id: u64,
    #[prost(bytes = "vec", tag = "23")]
    pub name: Vec<u8>,
    /// 1 for a begin, 2 for an end, 3 for an instant.
    #[prost(uint32, tag = "9")]
    pub kind: u32,
    #[prost(uint64, optional, tag = "11")]
    pub track: Option<u64>,
    #[prost(int64, optional, tag = "1")]
    pub delta_us: Option<i64>,
    #[prost(int64, optional, tag = "16")]
    pub absolute_us: Option<i64>,
    #[prost(message, repeated, tag = "4")]
    pub annotations: Vec<Annotation>,
}

/// `DebugAnnotation`, of which texts and numbers are used.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Annotation {
    #[prost(uint64, tag = "1")]
    pub name_id: u64,
    #[prost(bytes = "vec", tag = "10")]
    pub name: Vec<u8>,
    #[prost(oneof = "AnnotationContent", tags = "2, 3, 4, 5, 6, 17")]
    pub content: Option<AnnotationContent>,
}

/// The content of an annotation.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AnnotationContent {
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(uint64, tag = "3")]
    Unsigned(u64),
    #[prost(int64, tag = "4")]
    Integer(i64),
    #[prost(double, tag = "5")]
    Number(f64),
    #[prost(bytes = "vec", tag = "6")]
    Text(Vec<u8>),
    #[prost(uint64, tag = "17")]
    TextId(u64),
}
