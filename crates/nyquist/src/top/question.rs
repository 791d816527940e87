//! The query of a page: the view, the time, the order.

use crate::args::SortBy;
use nyquist_analysis::SampleState;
use nyquist_profile::{AllocationMeasure, ThreadIndex};
use std::collections::HashMap;

/// The view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ViewKind {
    #[default]
    Functions,
    Tree,
    Threads,
    Output,
    Flame,
}

impl ViewKind {
    /// The views with their keys and names.
    pub(super) const ALL: [(Self, &str); 5] = [
        (Self::Functions, "1 functions"),
        (Self::Tree, "2 tree"),
        (Self::Threads, "3 threads"),
        (Self::Output, "4 output"),
        (Self::Flame, "5 flame graph"),
    ];

    pub(super) fn next(self) -> Self {
        match self {
            Self::Functions => Self::Tree,
            Self::Tree => Self::Threads,
            Self::Threads => Self::Output,
            Self::Output => Self::Flame,
            Self::Flame => Self::Functions,
        }
    }
}

/// The period of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Period {
    /// The last seconds.
    #[default]
    Recent,
    /// All of it since the start.
    Overall,
}

/// The query of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) view: ViewKind,
    /// The kind of threads' time that is shown.
    pub(super) state: SampleState,
    /// The measure of allocations that is shown instead of time.
    pub(super) memory: Option<AllocationMeasure>,
    pub(super) period: Period,
    pub(super) sort: SortBy,
    pub(super) is_inverted: bool,
    pub(super) has_full_names: bool,
    /// In seconds.
    pub(super) window: u64,
    /// The text to search for. It is empty without a search.
    pub(super) search: String,
    /// The only thread, with its name.
    pub(super) thread: Option<(ThreadIndex, String)>,
    /// The nodes of the tree that the user opened (or closed).
    pub(super) opened: HashMap<u64, bool>,
}

impl Question {
    /// Shows the next kind of threads' time.
    pub(super) fn next_state(&mut self) {
        self.state = match self.state {
            SampleState::OffCpu => SampleState::Both,
            SampleState::Both => SampleState::OnCpu,
            SampleState::OnCpu => SampleState::OffCpu,
        };
    }

    /// Shows the next measure of allocations, or time after the last one.
    pub(super) fn next_memory(&mut self) {
        self.memory = match self.memory {
            None => Some(AllocationMeasure::Total),
            Some(AllocationMeasure::Total) => Some(AllocationMeasure::Live),
            Some(_) => None,
        };
    }

    /// The name of what is shown.
    pub(super) fn measure_name(&self) -> &'static str {
        match (self.memory, self.state) {
            (Some(AllocationMeasure::Live), _) => "live bytes",
            (Some(_), _) => "allocated bytes",
            (None, SampleState::OnCpu) => "CPU time",
            (None, SampleState::OffCpu) => "waiting",
            (None, SampleState::Both) => "CPU time and waiting",
        }
    }
}
