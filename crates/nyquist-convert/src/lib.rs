//! Event records to a profile: order, track, unwind, intern, symbolicate.
//!
//! The stages are modules, and data goes through them in that order. A source of events (a recording backend, a
//! file reader) pushes [`event::Event`]s and need know nothing else of this crate.

pub mod event;
pub mod perf;
