//! Event records to a profile: order, track, unwind, intern, symbolicate.
//!
//! The stages are modules, and data goes through them in that order. A source of events (a recording backend, a
//! file reader) pushes [`event::Event`]s into a [`Converter`] and need know nothing else of this crate; what the
//! converter gives is a profile of addresses, to which [`symbolicate()`] gives names.

mod account;
mod aux_files;
mod condense;
mod converter;
mod cpus;
pub mod event;
mod evict;
mod filter;
mod incomplete;
mod intern;
mod jit;
mod live_stacks;
mod mappings;
pub mod marker_file;
mod marker_schema;
pub mod marker_text;
mod markers;
mod memfd;
mod memory_image;
mod modules;
mod off_cpu;
mod on_cpu;
mod order;
pub mod perf;
pub mod perf_data;
mod process_root;
mod process_view;
mod program_arguments;
mod recorded_files;
mod recycler;
mod replaced_text;
mod reuse;
mod row_names;
mod select;
mod shape;
mod side_file;
mod side_news;
mod stack_bases;
mod stack_copy_feedback;
mod stack_prefetcher;
mod stages;
mod stated_symbols;
mod symbolicate;
pub mod sys;
mod thread_pool;
pub mod time_namespace;
mod track;
mod unnamed;
mod vdso;
mod walk;
mod walks;

pub use aux_files::AuxFiles;
pub use converter::{Converter, Finished, Libs, Options, Statistics};
pub use filter::{Filter, NamePattern};
pub use incomplete::{Incomplete, IncompleteCounts};
pub use jit::{JitSymbols, RefusedSideFile, SavedCode, SavedCodeError};
pub use modules::LibSource;
pub use recorded_files::RecordedFiles;
pub use select::Selection;
pub use shape::Shape;
pub use stack_copy_feedback::StackCopyFeedback;
pub use stated_symbols::StatedSymbols;
pub use symbolicate::{
    AddressReceiver, AddressSender, LibReport, Progress, Symbolicated, Symbolicator, Symbols,
    name_by_address, symbolicate,
};
pub use thread_pool::ThreadPool;
