//! Markers: named points and intervals on a thread's time line, and the schemas that describe their fields.

use crate::id::{CategoryId, MarkerSchemaId, StackId, StringId};
use crate::named::named;

/// A point or an interval on a thread's time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// Its name.
    pub name: StringId,
    /// When it was.
    pub timing: MarkerTiming,
    /// Its category.
    pub category: CategoryId,
    /// What it is; `None` for a marker that has only a name.
    pub schema: Option<MarkerSchemaId>,
    /// The values of the schema's fields, in the schema's order.
    pub values: Vec<MarkerValue>,
    /// The stack that caused it.
    pub stack: Option<StackId>,
}

/// When a marker was, in ns since the profile's zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerTiming {
    /// At one moment.
    Instant(u64),
    /// From the first moment to the second.
    Interval(u64, u64),
    /// The begin of an interval whose end is a marker of its own.
    IntervalStart(u64),
    /// The end of such an interval.
    IntervalEnd(u64),
}

impl MarkerTiming {
    /// When it begins or, where only its end is known, ends.
    pub fn first(self) -> u64 {
        match self {
            Self::Instant(time)
            | Self::Interval(time, _)
            | Self::IntervalStart(time)
            | Self::IntervalEnd(time) => time,
        }
    }
}

/// The value of one field of a marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarkerValue {
    /// The field is left out.
    Missing,
    /// Text.
    String(StringId),
    /// A whole number.
    Integer(i64),
    /// Any other number; not written unless it is finite.
    Number(f64),
}

/// A kind of marker: which fields it has and where it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MarkerSchema {
    /// Its name, unique in the profile, and none of [`RESERVED_NAMES`](Self::RESERVED_NAMES).
    pub name: String,
    /// The places where markers of this kind are shown.
    pub display: Vec<MarkerDisplay>,
    /// The fields.
    pub fields: Vec<MarkerField>,
    /// What the tooltip says; may hold `{marker.name}` and `{marker.data.KEY}`.
    pub tooltip_label: Option<String>,
    /// What the marker table says.
    pub table_label: Option<String>,
    /// What the marker chart says.
    pub chart_label: Option<String>,
    /// What the kind of marker is.
    pub description: Option<String>,
    /// Whether intervals of this kind are always properly nested, and drawn like a flame graph.
    pub is_stack_based: bool,
}

impl MarkerSchema {
    /// Names of kinds of markers to which the Firefox Profiler gives meanings of its own.
    pub const RESERVED_NAMES: [&str; 4] = ["Network", "IPC", "CompositorScreenshot", "Jank"];
}

impl MarkerField {
    /// Properties of a marker's data that are not fields.
    pub const RESERVED_KEYS: [&str; 2] = ["type", "cause"];
}

/// A field of a kind of marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MarkerField {
    /// The property of the marker's data, unique in its schema. A field with one of
    /// [`RESERVED_KEYS`](Self::RESERVED_KEYS) is not written.
    pub key: String,
    /// The name shown; `None` shows the key.
    pub label: Option<String>,
    /// How values are shown.
    pub format: MarkerFormat,
}

named! {
    /// A place where markers are shown.
    MarkerDisplay {
        /// The marker chart.
        Chart = "marker-chart",
        /// The marker table.
        Table = "marker-table",
        /// The time line at the top.
        TimelineOverview = "timeline-overview",
        /// The memory track.
        TimelineMemory = "timeline-memory",
        /// The IPC track.
        TimelineIpc = "timeline-ipc",
        /// The file I/O track.
        TimelineFileIo = "timeline-fileio",
        /// The stack chart.
        StackChart = "stack-chart",
    }
}

named! {
    /// How a field's values are shown. Durations and times are in ms unless the name says otherwise.
    MarkerFormat {
        /// A URL.
        Url = "url",
        /// A path.
        FilePath = "file-path",
        /// Text that may hold private things and is removed when a profile is sanitised.
        SanitizedString = "sanitized-string",
        /// Text.
        String = "string",
        /// Text that repeats: stored as an index of the string table.
        UniqueString = "unique-string",
        /// The id of a flow.
        FlowId = "flow-id",
        /// The id of a flow that ends here.
        TerminatingFlowId = "terminating-flow-id",
        /// A duration in ms.
        Duration = "duration",
        /// A time since the profile's zero, in ms.
        Time = "time",
        /// A duration in ms, shown in s.
        Seconds = "seconds",
        /// A duration in ms.
        Milliseconds = "milliseconds",
        /// A duration in ms, shown in µs.
        Microseconds = "microseconds",
        /// A duration in ms, shown in ns.
        Nanoseconds = "nanoseconds",
        /// A number of bytes.
        Bytes = "bytes",
        /// A share: 1 is 100 %.
        Percentage = "percentage",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Decimal = "decimal",
        /// A whole number, shown in hexadecimal.
        Hexadecimal = "hexadecimal",
        /// A process id.
        Pid = "pid",
        /// A thread id.
        Tid = "tid",
        /// A list of values.
        List = "list",
    }
}

impl MarkerFormat {
    /// Whether values are text, stored as it is or as an index of the string table.
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Self::Url
                | Self::FilePath
                | Self::SanitizedString
                | Self::String
                | Self::UniqueString
                | Self::FlowId
                | Self::TerminatingFlowId
                | Self::List
        )
    }

    /// Whether values may be text.
    pub fn takes_text(self) -> bool {
        self.is_text() || matches!(self, Self::Pid | Self::Tid)
    }
}
