//! What Event Tracing for Windows (ETW) writes: the events of the kernel, and the files (`.etl`) that they are
//! in. It needs no function of Windows, so that every system reads these files.
//!
//! The sources of the layouts are Microsoft's documentation of the MOF classes of the kernel's events ("Event
//! Tracing MOF Classes"), and the headers evntrace.h, evntcons.h and wmistr.h of the Windows SDK. What these
//! leave out, the file that describes it names its source. Numbers are little-endian.
//!
//! Parsers borrow from the event's bytes and do not trust them. A count or a length is compared with the
//! available bytes before it is used.

#![forbid(unsafe_code)]

mod clock;
pub mod clr;
mod event;
mod fields;
pub mod file;
mod guid;
pub mod kernel;

pub use clock::{Clock, ClockKind};
pub use event::{Event, PointerSize};
pub use fields::PayloadError;
pub use guid::Guid;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
