//! A quantity of a process that has a value at a time.

use super::ids::Pid;
use nyquist_profile::{CounterGraph, GraphColor};
use std::sync::Arc;

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
