//! For the profiled program itself: markers in nyquist's profiles.
//!
//! A program that uses [`tracing`](https://docs.rs/tracing) adds one layer. Its spans become intervals on the
//! threads that ran them, and its events become instants:
//!
//! ```
//! # #[cfg(feature = "tracing")] {
//! use tracing_subscriber::prelude::*;
//!
//! tracing_subscriber::registry().with(nyquist_tracing::layer()).init();
//! # }
//! ```
//!
//! Other programs set markers by hand with [`marker`] and [`instant`].
//!
//! Until a recorder listens, nothing is written, and a span costs next to nothing. `nyquist record ./app`
//! enables markers in the programs that it starts, and `nyquist record -p PID` in the one that it attaches
//! to. Then each thread writes to its own ring, without a lock, a system call or an allocation for each
//! marker. Markers that do not fit are counted. Written markers are read even if the program crashes.
//! [`protocol`] defines the rings' layout.
//!
//! Markers are recorded on Linux. On other systems the same functions exist and do nothing, so a portable
//! program needs no conditions.

#[cfg(target_os = "linux")]
mod area;
#[cfg(feature = "tracing")]
mod layer;
mod local;
mod marker;
#[cfg(not(target_os = "linux"))]
mod no_recorder;
pub mod protocol;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod session;
#[cfg(feature = "tracing")]
mod spans;
mod sys;

#[cfg(not(target_os = "linux"))]
use no_recorder::{ring, session};

#[cfg(feature = "tracing")]
pub use layer::{Layer, Switch, layer};
pub use marker::{Instant, Interval, Value, instant, marker};

/// The examples of the page that the registry shows.
#[cfg(all(doctest, feature = "tracing"))]
#[doc = include_str!("../README.md")]
struct Readme;
