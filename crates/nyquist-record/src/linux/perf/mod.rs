//! Sampling with `perf_event_open`: inherited events for every thread and CPU, their rings, and their reader.

mod attr;
mod events;
mod open;
mod outcome;
mod pool;
mod reader;
mod recording;
mod skim;
mod totals;

pub use attr::Trigger;
pub use open::{Options, Perf, Target};
pub use outcome::{Notice, OpenError, Outcome};
pub use reader::EndReason;
pub use recording::{Recording, StopHandle, Summary};
