//! Sampling with `perf_event_open`: inherited events for every thread and CPU, their rings, and their reader.
//!
//! ```no_run
//! use nyquist_record::linux::perf::Perf;
//! use nyquist_record::linux::{Command, Options, RecordingTarget, launch};
//!
//! let command = Command::from_words(["ls".into()]).ok_or("no command")?;
//! let child = launch::prepare(&command)?;
//! let perf = Perf::open(RecordingTarget::Child(child.pid()), &Options::default())?;
//! let mut recording = perf.record()?;
//! let running = child.start()?;
//! let mut events = Vec::new();
//! for chunk in &mut recording {
//!     chunk.decode(&mut events);
//!     // Unwind and keep what is requested of the events here: their stacks are the recorder's memory.
//!     events.clear();
//! }
//! let summary = recording.finish();
//! let ended = running.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod active_outer_stacks;
mod additional_events;
mod attr;
mod compact_record;
mod deep_stacks;
mod drain;
mod drain_scheduler;
mod ended_threads;
mod event_opener;
mod event_pace;
mod event_parameters;
mod event_pause;
mod events;
mod inherited_events;
mod jitter;
mod live_totals;
mod look_pace;
mod open_error;
mod open_recording;
mod outcome;
mod outer_stacks;
mod pace;
mod reader;
mod recording;
mod refusals;
mod ring_source;
mod scope;
mod sideband_throttle;
mod target_opener;
mod totals;
mod unreported_losses;

pub use attr::Trigger;
pub(crate) use event_pause::EventPause;
pub use open_error::{EventDenied, OpenError};
pub use open_recording::Perf;
pub use outcome::{AttachSummary, Coverage, Notice, PerfOutcome};
pub use recording::{PerfRecording, PerfSummary};
pub(crate) use target_opener::requested_cpus;
