//! The tables of a profile, and the Firefox Profiler's format.
//!
//! A [`Profile`] is the input of every report, export and viewer. It is immutable. A [`ProfileBuilder`]
//! makes one, and interns repeated rows. The tables are those of the Firefox Profiler's processed format
//! (version 66). A sample refers to a stack, a stack is a frame and a prefix, and a frame is a position in
//! a function. All threads share these tables.
//!
//! Times are nanoseconds since the profile's zero, and a sample's weight is the time that ended at it
//! ([`Sample`]). Addresses are relative addresses (offsets from the image base of their lib). Ids are indexes
//! into the tables of their own profile, so the id of one profile has no meaning in another.

#![forbid(unsafe_code)]

mod allocation_callers;
mod allocations;
mod builder;
mod category;
mod code;
mod counter;
pub mod firefox;
mod id;
mod marker;
mod marker_samples;
mod measure;
mod meta;
mod named;
mod profile;
mod recorded_events;
mod rename;
mod row_index;
mod sample;
mod samples;
mod split;
mod stable_numbers;
mod stack_index;
mod strings;
mod thread;
pub mod well_known;
mod window;

pub use allocations::{AllocatedGroup, AllocationMeasure, allocation_schema};
pub use builder::{CodeTables, ProfileBuilder};
pub use category::{Category, CategoryColor, CategoryPair};
pub use code::{Frame, Func, FuncKind, Lib, NativeSymbol, Source, Stack};
pub use counter::{Counter, CounterDisplay, CounterGraph, CounterSample, GraphColor};
pub use id::{
    CategoryId, CounterId, FrameId, FuncId, LibId, MarkerSchemaId, NativeSymbolId, ProcessIndex, SourceId,
    StackId, StringId, ThreadIndex,
};
pub use marker::{Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue};
pub use measure::{Measure, Unit};
pub use meta::{ExtraInfo, Meta};
pub use profile::Profile;
pub use sample::{Sample, UntimedSample};
pub use samples::Samples;
pub use stable_numbers::StableNumbers;
pub use strings::StringTable;
pub use thread::{Process, Thread};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
