//! The messages of the packets `StackSample`, as far as they are used (`stack_sample.proto`).

use prost::{Message, Oneof};

/// `StackSample`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StackSample {
    #[prost(message, optional, tag = "1")]
    pub task: Option<TaskContext>,
    #[prost(uint64, tag = "2")]
    pub task_id: u64,
    #[prost(message, optional, tag = "5")]
    pub callstack: Option<InlineCallstack>,
    #[prost(uint64, tag = "6")]
    pub callstack_id: u64,
    #[prost(message, optional, tag = "9")]
    pub primary: Option<CounterDescriptor>,
    #[prost(uint64, tag = "10")]
    pub primary_id: u64,
    #[prost(uint64, optional, tag = "11")]
    pub primary_weight: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub followers: Vec<CounterDescriptor>,
    #[prost(uint64, repeated, packed = "true", tag = "13")]
    pub follower_ids: Vec<u64>,
    #[prost(uint64, repeated, packed = "true", tag = "14")]
    pub follower_weights: Vec<u64>,
}

/// `StackSample.TaskContext`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct TaskContext {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    #[prost(uint32, tag = "3")]
    pub tid: u32,
}

/// `InlineCallstack`: frames with their names, the outermost first.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InlineCallstack {
    #[prost(message, repeated, tag = "1")]
    pub frames: Vec<InlineFrame>,
}

/// `InlineCallstack.Frame`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct InlineFrame {
    #[prost(bytes = "vec", tag = "1")]
    pub function: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub file: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub line: u32,
}

/// `StackSample.CounterDescriptor`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(oneof = "CounterUnit", tags = "3, 4")]
    pub unit: Option<CounterUnit>,
    #[prost(uint64, optional, tag = "5")]
    pub multiplier: Option<u64>,
}

/// The unit of a counter.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum CounterUnit {
    /// `StackSample.Unit`.
    #[prost(uint32, tag = "3")]
    Known(u32),
    #[prost(bytes = "vec", tag = "4")]
    Named(Vec<u8>),
}

/// `StackSampleDefaults`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StackSampleDefaults {
    #[prost(message, optional, tag = "2")]
    pub primary: Option<CounterDescriptor>,
    #[prost(message, repeated, tag = "3")]
    pub followers: Vec<CounterDescriptor>,
}
