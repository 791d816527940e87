//! The Linux perf event ABI: event records and their fields.
//!
//! The source of every layout in this crate is the kernel's `include/uapi/linux/perf_event.h` (the
//! comments of `enum perf_event_type` and `enum perf_event_sample_format`) and the manual page
//! perf_event_open(2), "MMAP layout". Numbers have the byte order of the machine that wrote them.
//!
//! It also has the two files in which just-in-time compilers name their code for `perf`: jitdumps and perf
//! maps.
//!
//! Parsers borrow from the record's bytes and do not trust them. A count or a length is compared with the
//! available bytes before it is used.

#![forbid(unsafe_code)]

pub mod abi;
mod attr;
mod byte_order;
mod code_names;
mod cursor;
mod encode;
mod error;
pub mod file;
mod format;
mod jitdump;
mod perf_map;
mod record;
mod sample;
mod sample_layout;
mod tasks;

pub use attr::{AttrFlags, EventAttr};
pub use byte_order::ByteOrder;
pub use code_names::{CodeNames, NamedCode};
pub use error::RecordError;
pub use format::{ReadFormat, RecordFormat, RecordId, SampleType};
pub use jitdump::{JitDumpBody, JitDumpError, JitDumpHeader, JitDumpLine, JitDumpLines, JitDumpRecord};
pub use nyquist_resources::{Budget, Charge};
pub use perf_map::{PerfMap, PerfMapEntry};
pub use record::{CpuMode, Header, Record, RecordBody, parse_record};
pub use sample::{
    Branch, Branches, CounterValue, CounterValues, RegisterAbi, Registers, Sample, UserStackCopy, WordList,
};
pub use sample_layout::{SampleLayout, StackPlace};
pub use tasks::{
    BpfEvent, Cgroup, Comm, DeferredCallchain, KernelSymbol, Lost, MappedIdentity, Mmap, Namespaces, Read,
    Switch, Task, TextPoke, Throttle,
};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
