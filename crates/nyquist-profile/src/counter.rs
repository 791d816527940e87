//! Counters: numbers over time, drawn as a track of their process.

use crate::id::ProcessIndex;
use crate::named::named;

/// A number over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its kind; `Memory` gives the memory track.
    pub category: String,
    /// What it counts.
    pub description: String,
    /// The process it belongs to.
    pub process: ProcessIndex,
    /// How it is drawn.
    pub display: CounterDisplay,
    /// Its values; ordered by time in a finished profile.
    pub samples: Vec<CounterSample>,
}

/// A counter's change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterSample {
    /// When, in ns since the profile's zero.
    pub time: u64,
    /// The change since the sample before. The first one's is not drawn. What is not finite is written as 0.
    pub delta: f64,
    /// How many operations made the change, where known.
    pub operations: Option<u32>,
}

/// How a counter is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterDisplay {
    /// The kind of graph.
    pub graph: CounterGraph,
    /// The unit, as `bytes`.
    pub unit: String,
    /// The graph's colour.
    pub color: GraphColor,
    /// The place of markers shown in the track, as `timeline-memory`.
    pub marker_schema_location: Option<String>,
    /// Tracks are ordered by it.
    pub sort_weight: i32,
    /// The track's label.
    pub label: String,
}

named! {
    /// What a counter's graph shows.
    CounterGraph {
        /// The sum of the changes.
        Accumulated = "line-accumulated",
        /// The changes over time.
        Rate = "line-rate",
    }
}

named! {
    /// The colours that the Firefox Profiler has for graphs.
    GraphColor {
        /// Blue.
        Blue = "blue",
        /// Green.
        Green = "green",
        /// Grey.
        Grey = "grey",
        /// The colour of text.
        Ink = "ink",
        /// Magenta.
        Magenta = "magenta",
        /// Orange.
        Orange = "orange",
        /// Purple.
        Purple = "purple",
        /// Red.
        Red = "red",
        /// Teal.
        Teal = "teal",
        /// Yellow.
        Yellow = "yellow",
    }
}
