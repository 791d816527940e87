//! Event records to a profile: order, track, unwind, intern, symbolicate.
//!
//! A source of events (a recording backend, a file reader) pushes [`event::Event`]s into a [`Converter`], and
//! needs nothing else of this crate. What is known before the first event is in the converter's [`Options`].
//! The converter returns a profile of addresses, to which [`symbolicate()`] gives names.
//!
//! Each stage has a folder. `decode` makes events, `order` sorts them by time, and `pipeline` takes each
//! that is requested (`selection`) through the others: `processes` (with their mappings in `modules` and `jit`),
//! `unwind`, `account` and `build`, which holds the profile. `symbolicate` comes last.

#![forbid(unsafe_code)]

mod account;
mod build;
mod conversion_result;
mod converter;
mod decode;
pub mod etw;
pub mod event;
mod files;
mod jit;
mod mappings;
mod module_index;
mod modules;
mod options;
mod order;
pub mod perf_data;
mod pipeline;
mod processes;
mod recycler;
mod selection;
mod shape;
mod spool;
mod statistics;
mod symbolicate;
mod targets;
pub mod time_namespace;
mod unwind;

pub use account::cycle_time::CycleTime;
pub use account::occurrence_counts::{OccurrenceCount, OccurrenceCounts};
pub use build::seen_addresses::{AddressReceiver, AddressSender};
pub use conversion_result::{ConversionResult, Libs};
pub use converter::Converter;
pub use decode::{allocation_file, marker_file, marker_text, perf};
pub use jit::aux_files::AuxFiles;
pub use jit::saved::{RefusedSideFile, SavedCode, SavedCodeError};
pub use jit::symbols::JitSymbols;
pub use modules::lib_source::LibSource;
pub use modules::provided_symbols::ProvidedSymbols;
pub use modules::recorded_files::RecordedFiles;
pub use nyquist_unwind::SignalStack;
pub use options::Options;
pub use processes::memory::DEFAULT_PROCESS_MEMORY;
pub use selection::name_pattern::NamePattern;
pub use selection::process_filter::ProcessFilter;
pub use selection::sample_selection::SampleSelection;
pub use shape::Shape;
pub use spool::recover::recover;
pub use spool::tap::SpoolTap;
pub use statistics::Statistics;
pub use symbolicate::lib_symbols::LibSymbols;
pub use symbolicate::unnamed_libs::unnamed_libs;
pub use symbolicate::{
    LibReport, Progress, SymbolicatedProfile, Symbolicator, Symbols, name_by_address, symbolicate,
};
#[cfg(target_os = "linux")]
pub use targets::Spawn;
#[cfg(target_os = "linux")]
pub use targets::answer_requests;
pub use targets::{MemoryCalls, ProcessFile, Targets};
pub use unwind::active_completion::StackCopyFeedback;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
