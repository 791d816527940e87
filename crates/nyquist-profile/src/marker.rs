//! Markers: named points and intervals on a thread's time line, and the schemas that describe their fields.

use crate::id::{CategoryId, MarkerSchemaId, StackId, StringId};
use crate::named::named;

/// A point or an interval on a thread's time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// Its name.
    pub name: StringId,
    /// Its time.
    pub timing: MarkerTiming,
    /// Its category.
    pub category: CategoryId,
    /// Its kind; `None` for a marker that has only a name.
    pub schema: Option<MarkerSchemaId>,
    /// The values of the schema's fields, in the schema's order.
    pub values: Vec<MarkerValue>,
    /// The stack that caused it.
    pub stack: Option<StackId>,
}

/// The time of a marker, in ns since the profile's zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerTiming {
    /// At one moment.
    Instant(u64),
    /// From the first moment to the second.
    Interval(u64, u64),
    /// The start of an interval whose end is a separate marker.
    IntervalStart(u64),
    /// The end of such an interval.
    IntervalEnd(u64),
}

impl MarkerTiming {
    /// The start; or the end, if only that is known.
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
    /// The field is missing.
    Missing,
    /// Text.
    String(StringId),
    /// A whole number.
    Integer(i64),
    /// Any other number; written only if it is finite.
    Number(f64),
}

/// A kind of marker: its fields and the places where it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MarkerSchema {
    /// Its name, unique in the profile, and not one of [`RESERVED_NAMES`](Self::RESERVED_NAMES).
    pub name: String,
    /// The places where markers of this kind are shown.
    pub display: Vec<MarkerDisplay>,
    /// The fields.
    pub fields: Vec<MarkerField>,
    /// The text of the tooltip; may contain `{marker.name}` and `{marker.data.KEY}`.
    pub tooltip_label: Option<String>,
    /// The text in the marker table.
    pub table_label: Option<String>,
    /// The text in the marker chart.
    pub chart_label: Option<String>,
    /// A description of the kind of marker.
    pub description: Option<String>,
    /// Whether intervals of this kind are always properly nested, and drawn like a flame graph.
    pub is_stack_based: bool,
}

impl MarkerSchema {
    /// Names of kinds of markers that have a special meaning in the Firefox Profiler.
    pub const RESERVED_NAMES: [&str; 4] = ["Network", "IPC", "CompositorScreenshot", "Jank"];
}

impl MarkerField {
    /// Properties of a marker's data that are not fields.
    pub const RESERVED_KEYS: [&str; 2] = ["type", "cause"];
}

/// A field of a kind of marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MarkerField {
    /// The property of the marker's data, unique in its schema. A field with one of the
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
        /// Text that may be private and is removed when a profile is sanitised.
        SanitizedString = "sanitized-string",
        /// Text.
        String = "string",
        /// Repeated text: stored as an index into the string table.
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
    /// Whether values are text, stored directly or as an index into the string table.
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
