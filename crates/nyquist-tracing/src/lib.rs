//! For the profiled program itself: markers in nyquist's profiles.
//!
//! A program that uses [`tracing`](https://docs.rs/tracing) adds one layer, and its spans become intervals on the
//! threads that ran them, its events moments:
//!
//! ```
//! # #[cfg(feature = "tracing")] {
//! use tracing_subscriber::prelude::*;
//!
//! tracing_subscriber::registry().with(nyquist_tracing::layer()).init();
//! # }
//! ```
//!
//! One that does not, marks by hand with [`marker`] and [`instant`].
//!
//! Nothing is written, and a span costs next to nothing, until a recorder listens. `nyquist record ./app`
//! switches markers on in the programs that it starts, and `nyquist record -p PID` in the one that it attaches
//! to. Then each thread writes to a ring of its own, without a lock, a system call or an allocation for each
//! marker; what does not fit is counted. What was written is read even if the program crashes. [`protocol`] is
//! the rings' layout.

#[cfg(target_os = "linux")]
mod area;
#[cfg(all(feature = "tracing", target_os = "linux"))]
mod layer;
#[cfg(target_os = "linux")]
mod local;
#[cfg(target_os = "linux")]
mod marker;
pub mod protocol;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod session;
#[cfg(all(feature = "tracing", target_os = "linux"))]
mod spans;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(all(feature = "tracing", target_os = "linux"))]
pub use layer::{Layer, Switch, layer};
#[cfg(target_os = "linux")]
pub use marker::{Instant, Interval, Value, instant, marker};
