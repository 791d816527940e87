//! The packets `StackSample` of later versions of Perfetto: their messages, and what they weigh. A sample has a weight of
//! the counter that it was taken by, and of others that were read with it.
//!
//! The messages are those of `stack_sample.proto`.

use nyquist_profile::{FuncKind, Measure, StackId, Unit};
use prost::{Message, Oneof};
use rustc_hash::FxHashMap;

use super::sequence::{Sequence, text};
use crate::import::{CodePosition, Importer};
use crate::pprof::factor_of;
use crate::values::SampleValueKind;

/// The most counters that are told apart.
const MAX_COUNTERS: usize = 256;

/// The most frames of a stack that is in its sample.
const MAX_INLINE_FRAMES: usize = 4096;

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

/// The state of a sequence for these packets.
#[derive(Default)]
pub(super) struct StackSampleState {
    tasks: FxHashMap<u64, TaskContext>,
    counters: FxHashMap<u64, CounterDescriptor>,
    defaults: StackSampleDefaults,
}

impl StackSampleState {
    pub(super) fn intern(&mut self, tasks: Vec<TaskContext>, counters: Vec<CounterDescriptor>) {
        self.tasks.extend(tasks.into_iter().map(|it| (it.id, it)));
        self.counters.extend(counters.into_iter().map(|it| (it.id, it)));
    }

    pub(super) fn set_defaults(&mut self, defaults: Option<StackSampleDefaults>) {
        self.defaults = defaults.unwrap_or_default();
    }

    /// The process and the thread of a sample.
    pub(super) fn thread(&self, sample: &StackSample) -> (i64, i64) {
        let task = sample.task.or_else(|| self.tasks.get(&sample.task_id).copied()).unwrap_or_default();
        (task.pid.into(), task.tid.into())
    }

    /// The counters of a sample, each with its weight. The first one is what it was taken by.
    fn weights<'a>(&'a self, sample: &'a StackSample) -> Vec<(Option<&'a CounterDescriptor>, u64)> {
        let primary = (sample.primary.as_ref())
            .or_else(|| self.counters.get(&sample.primary_id))
            .or(self.defaults.primary.as_ref());
        let followers: Vec<_> = if !sample.followers.is_empty() {
            sample.followers.iter().map(Some).collect()
        } else if !sample.follower_ids.is_empty() {
            sample.follower_ids.iter().map(|id| self.counters.get(id)).collect()
        } else {
            self.defaults.followers.iter().map(Some).collect()
        };
        let mut weights = vec![(primary, sample.primary_weight.unwrap_or(1))];
        weights.extend(followers.into_iter().zip(sample.follower_weights.iter().copied()));
        weights
    }
}

/// Weights of samples, by counter.
#[derive(Default)]
pub(super) struct CounterWeights {
    /// The counters in the order in which they came. Those beyond the limit are the last one.
    pub(super) values: Vec<SampleValueKind>,
    places: FxHashMap<(Vec<u8>, Option<Vec<u8>>), usize>,
    /// Each sample's index, its counter, and its weight.
    pub(super) rows: Vec<(usize, usize, u64)>,
}

impl CounterWeights {
    /// Adds the weights of a sample.
    pub(super) fn add(&mut self, index: usize, state: &StackSampleState, sample: &StackSample) {
        for (counter, weight) in state.weights(sample) {
            let unnamed = CounterDescriptor::default();
            let place = self.place(counter.unwrap_or(&unnamed));
            let factor = self.values[place].factor;
            self.rows.push((index, place, weight.saturating_mul(factor)));
        }
    }

    fn place(&mut self, counter: &CounterDescriptor) -> usize {
        let unit = match &counter.unit {
            Some(CounterUnit::Named(unit)) => Some(unit.clone()),
            Some(CounterUnit::Known(unit)) => Some(vec![unit.to_le_bytes()[0]]),
            None => None,
        };
        let key = (counter.name.clone(), unit);
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        if self.values.len() < MAX_COUNTERS {
            self.values.push(value(counter));
        }
        let place = self.values.len() - 1;
        self.places.insert(key, place);
        place
    }

    /// The counter that is shown by default: the first of CPU time, or else the first of all.
    pub(super) fn default_value(&self) -> usize {
        self.values.iter().position(is_cpu_time).unwrap_or(0)
    }
}

/// Whether a counter is a clock of the CPU time of threads.
fn is_cpu_time(value: &SampleValueKind) -> bool {
    value.unit == Unit::Time && matches!(&*value.name, "cpu-clock" | "task-clock")
}

/// What a profile of this counter measures.
pub(super) fn measure(value: &SampleValueKind) -> Measure {
    if is_cpu_time(value) { Measure::default() } else { value.measure() }
}

fn value(counter: &CounterDescriptor) -> SampleValueKind {
    let name = if counter.name.is_empty() { "samples".into() } else { text(&counter.name) };
    let (factor, unit) = match &counter.unit {
        Some(CounterUnit::Known(1)) => (1, Unit::Time),
        Some(CounterUnit::Known(4)) => (1, Unit::Bytes),
        Some(CounterUnit::Named(unit)) => factor_of(&text(unit)),
        Some(CounterUnit::Known(_)) | None => (1, Unit::Count),
    };
    let factor = factor.saturating_mul(counter.multiplier.filter(|&it| it > 0).unwrap_or(1));
    SampleValueKind { name: name.to_string(), unit, factor }
}

/// The stack of a sample: the one in it, or an interned one.
pub(super) fn stack(
    importer: &mut Importer,
    sequence: &mut Sequence,
    sample: &StackSample,
    bytes_left: &mut usize,
) -> Option<StackId> {
    let Some(inline) = &sample.callstack else {
        return sequence.stack(importer, sample.callstack_id, bytes_left);
    };
    let mut stack = None;
    for frame in inline.frames.iter().take(MAX_INLINE_FRAMES) {
        let (name, file) = (text(&frame.function), text(&frame.file));
        let frame = importer.frame(&CodePosition {
            name: &name,
            file: Some(&file),
            line: Some(frame.line),
            kind: FuncKind::default(),
            ..CodePosition::default()
        });
        stack = Some(importer.stack(stack, frame));
    }
    stack
}
