//! The options of a recording that is controlled while it runs: the part that is kept, pauses, and saves.

use super::quantity::{seconds, whole};
use super::trigger::Trigger;
use clap::Args;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The times that can be given, in seconds.
const SECONDS: RangeInclusive<f64> = 0.1..=1e9;

/// What a running recording keeps, and when it is saved.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "While it runs (Linux)")]
pub(crate) struct FlightArgs {
    /// Keep only the last part, as 30s, in memory that does not grow with time; it is saved at the end, and before it
    /// on SIGUSR1, by `nyquist ctl save`, and by --trigger
    #[arg(long, value_name = "TIME", conflicts_with_all = ["perf_data", "alloc", "iteration_count", "live"],
        value_parser = |text: &str| seconds(text, SECONDS))]
    pub(crate) last: Option<Duration>,
    /// Save what is kept when this is so: 'cpu > 90% for 5s' (of one CPU), 'rss > 2G', 'wait > 500ms', 'wait lock >
    /// 500ms', 'marker NAME > 100ms' (may be repeated)
    #[arg(long, value_name = "CONDITION", requires = "last")]
    pub(crate) trigger: Vec<Trigger>,
    /// How long triggers rest after a save
    #[arg(long, value_name = "TIME", requires = "trigger", default_value = "60s", value_parser = |text: &str| seconds(text, 1.0..=1e9))]
    pub(crate) save_pause: Duration,
    /// The most profiles that are saved before the end
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = |text: &str| whole::<u32>(text, 1..=100_000))]
    pub(crate) max_saves: u32,
    /// Begin to record only after this time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["perf_data", "iteration_count", "start_paused"],
        value_parser = |text: &str| seconds(text, SECONDS))]
    pub(crate) delay: Option<Duration>,
    /// Begin to record only at `nyquist ctl start`
    #[arg(long, conflicts_with_all = ["perf_data", "iteration_count"])]
    pub(crate) start_paused: bool,
    /// Obey `nyquist ctl` (so do --last, --delay and --start-paused)
    #[arg(long, conflicts_with_all = ["perf_data", "iteration_count"])]
    pub(crate) ctl: bool,
}

impl FlightArgs {
    /// Whether the recording is controlled while it runs.
    pub(crate) fn is_controlled(&self) -> bool {
        self.last.is_some() || self.begins_paused() || self.ctl
    }

    /// Whether nothing is recorded at first.
    pub(crate) fn begins_paused(&self) -> bool {
        self.delay.is_some() || self.start_paused
    }
}
