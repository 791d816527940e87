//! Counters: numbers over time, drawn as a track of their process.

use crate::id::ProcessIndex;
use crate::named::named;

/// A number over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its kind; `Memory` is shown as the memory track.
    pub category: String,
    /// Its description.
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
    /// The time, in ns since the profile's zero.
    pub time: u64,
    /// The change since the previous sample. The first change is not drawn. Values that are not finite are
    /// written as 0.
    pub delta: f64,
    /// The number of operations that made the change, if known.
    pub operations: Option<u32>,
}

/// How a counter is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterDisplay {
    /// The kind of graph.
    pub graph: CounterGraph,
    /// The unit, such as `bytes`.
    pub unit: String,
    /// The graph's colour.
    pub color: GraphColor,
    /// The display location of markers shown in the track, such as `timeline-memory`.
    pub marker_schema_location: Option<String>,
    /// The sort key of tracks.
    pub sort_weight: i32,
    /// The track's label.
    pub label: String,
}

named! {
    /// The kind of a counter's graph.
    CounterGraph {
        /// The sum of the changes.
        Accumulated = "line-accumulated",
        /// The changes over time.
        Rate = "line-rate",
    }
}

named! {
    /// The Firefox Profiler's colours of graphs.
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
