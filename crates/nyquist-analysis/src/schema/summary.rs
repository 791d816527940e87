//! The summary that answers begin with, and the counters of a recording.

use serde::Serialize;

use super::amounts::Whole;
use crate::query::counters::{CounterFigure, CounterSummary};
use crate::sample_state::SampleState;
use crate::view::View;

/// The recording, and the selected part of it
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary<'a> {
    /// The profile's name
    pub profile: &'a str,
    /// What weights count: `CPU time`, `waiting` with `--off-cpu`, or another tool's measure, as `inuse_space`
    pub measure: &'a str,
    /// The whole.
    #[serde(flatten)]
    pub whole: Whole,
    /// From the first to the last moment of the recording, as far as it is in `--range`
    pub duration_ns: u64,
    /// The CPU time of all threads, as their clocks measured it
    pub cpu_ns: u64,
    /// How many samples there are, those that stand for time without one included
    pub samples: u64,
    /// How many samples the kernel dropped
    pub lost_samples: u64,
    /// The weight in user code
    pub user_weight: u64,
    /// The weight in the kernel
    pub kernel_weight: u64,
    /// Of the kernel's, what could not be sampled for want of permission
    pub kernel_not_permitted_weight: u64,
    /// The weight of threads that slept or ended before a sample came, or whose samples were lost
    pub not_sampled_weight: u64,
    /// The weight in stacks that do not reach their root
    pub truncated_weight: u64,
    /// How many processes have samples
    pub process_count: usize,
    /// How many threads have samples
    pub thread_count: usize,
}

/// What a process used, by a counter
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CounterRow<'a> {
    /// The name of the process
    pub process: &'a str,
    /// The id of the process
    pub pid: &'a str,
    /// The counter's name
    pub counter: &'a str,
    /// The unit of its value
    pub unit: &'a str,
    /// `peak` for the highest value, `total` for by how much it has grown
    pub kind: &'static str,
    /// That value
    pub value: f64,
}

impl<'a> Summary<'a> {
    /// The summary of a view.
    pub fn of(view: &View<'a>) -> Self {
        let (summary, meta) = (view.summary(), view.profile().meta());
        Self {
            profile: &meta.product,
            measure: match view.selection().state {
                SampleState::OffCpu => "waiting",
                SampleState::OnCpu | SampleState::Both => &meta.measure.name,
            },
            whole: Whole::of(view),
            duration_ns: summary.duration_ns,
            cpu_ns: if meta.measure.is_cpu_time() { summary.cpu_ns } else { 0 },
            samples: summary.samples,
            lost_samples: summary.lost_samples,
            user_weight: summary.user.weight,
            kernel_weight: summary.kernel.weight,
            kernel_not_permitted_weight: summary.kernel_not_permitted.weight,
            not_sampled_weight: summary.not_sampled.weight,
            truncated_weight: summary.truncated.weight,
            process_count: summary.processes,
            thread_count: summary.threads,
        }
    }
}

impl<'a> CounterRow<'a> {
    /// The counters of a view.
    pub fn all(view: &View<'a>) -> Vec<Self> {
        let row = |counter: &CounterSummary<'a>| {
            let process = view.profile().process(counter.process);
            let (kind, value) = match counter.figure {
                CounterFigure::Peak(value) => ("peak", value),
                CounterFigure::Total(value) => ("total", value),
            };
            Self {
                process: &process.name,
                pid: &process.pid,
                counter: counter.name,
                unit: counter.unit,
                kind,
                value,
            }
        };
        view.counters().iter().map(row).collect()
    }
}
