//! A point or an interval that the program itself, or a tool that watches it, marked.

use super::ids::{Pid, Tid};
use super::timestamp::Timestamp;
use nyquist_profile::{CategoryColor, MarkerSchema};
use std::sync::Arc;

/// A point or an interval that has a name. [`Event::time`](super::Event::time) is its time or, for an interval, the
/// time of its end.
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
