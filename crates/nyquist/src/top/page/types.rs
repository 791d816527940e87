//! The types of a page: columns, rows, and the load of its target.

use crate::flame_screen::FlameBoxes;
use crate::number::{counted, percent};
use crate::scale::bytes;
use crate::text::{Style, one_line};
use nyquist_analysis::SampleState;
use nyquist_profile::{AllocationMeasure, ThreadIndex};

/// The width of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::top) enum Width {
    /// A number of characters, aligned to the right.
    Number(u16),
    /// A number of characters, aligned to the left.
    Text(u16),
    /// The given fraction of the screen's width, aligned to the left.
    Part(u16),
    /// The rest of the screen, aligned to the left.
    Rest,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::top) struct Column {
    pub(in crate::top) heading: &'static str,
    pub(in crate::top) width: Width,
    /// The text above this column and the following ones. It is empty if the previous column's text
    /// continues.
    pub(in crate::top) group: String,
    /// Whether the rows are ordered by it.
    pub(in crate::top) is_sorted: bool,
    /// The least width of a screen that shows it.
    pub(in crate::top) from: u16,
}

impl Column {
    pub(in crate::top) fn new(heading: &'static str, width: Width) -> Self {
        Self { heading, width, group: String::new(), is_sorted: false, from: 0 }
    }

    /// Bars beside the column before it, on wide screens.
    pub(in crate::top) fn bars() -> Self {
        Self { from: 120, ..Self::new("", Width::Text(12)) }
    }

    pub(in crate::top) fn sorted(self, is_sorted: bool) -> Self {
        Self { is_sorted, ..self }
    }

    pub(in crate::top) fn under(self, group: impl Into<String>) -> Self {
        Self { group: group.into(), ..self }
    }
}

/// The contents of a column.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::top) enum Cell {
    Text(String, Style),
    /// A bar of this share of the column's width.
    Bar(f64),
    /// The row's name, after its place in the tree.
    Name,
}

impl Cell {
    /// A share; empty for 0.
    pub(in crate::top) fn share(share: f64) -> Self {
        let text = if share > 0.0 { percent(share) } else { String::new() };
        Self::Text(text, Style::of_share(share))
    }

    pub(in crate::top) fn dim(text: &str) -> Self {
        Self::text(text, Style::Dim)
    }

    /// A text with hidden characters escaped, so that its width is that of the displayed text.
    pub(in crate::top) fn text(text: &str, style: Style) -> Self {
        Self::Text(one_line(text).into_owned(), style)
    }
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::top) struct Row {
    /// Its identity, the same on later pages.
    pub(in crate::top) key: u64,
    /// Its name for display.
    pub(in crate::top) name: String,
    /// Its depth in the tree.
    pub(in crate::top) depth: usize,
    /// Whether it is an open or a closed node of the tree; `None` for a leaf.
    pub(in crate::top) is_open: Option<bool>,
    pub(in crate::top) thread: Option<ThreadIndex>,
    pub(in crate::top) cells: Vec<Cell>,
}

/// The load of an item: how much it ran or waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::top) struct Load {
    /// The kind of threads' time.
    pub(in crate::top) state: SampleState,
    /// The samples.
    pub(in crate::top) weight: u64,
    /// The time, in ns.
    pub(in crate::top) duration: u64,
    /// Threads' time per time: 1 is a whole CPU, or a thread that waits all the time.
    pub(in crate::top) cpus: f64,
    /// The measure of allocations, if the weight is their bytes, and the mean distance of samples in bytes.
    pub(in crate::top) memory: Option<(AllocationMeasure, Option<u64>)>,
}

impl Load {
    pub(in crate::top) fn new(state: SampleState, weight: u64, duration: u64, interval: u64) -> Self {
        let used = weight as f64 * interval as f64;
        let cpus = if duration == 0 { 0.0 } else { used / duration as f64 };
        Self { state, weight, duration, cpus, memory: None }
    }

    /// Bytes of a measure of allocations.
    pub(in crate::top) fn of_memory(
        memory: (AllocationMeasure, Option<u64>),
        weight: u64,
        duration: u64,
    ) -> Self {
        Self { weight, duration, memory: Some(memory), ..Self::default() }
    }

    /// The most that the standard error of sampled bytes can be, as a share of them.
    pub(in crate::top) fn error_share(&self) -> Option<f64> {
        let (_, distance) = self.memory?;
        let share = (distance? as f64 / self.weight as f64).sqrt();
        (self.weight > 0).then_some(share)
    }

    /// The average load.
    pub(in crate::top) fn busy(&self) -> String {
        if self.memory.is_some() {
            let seconds = self.duration.max(1) as f64 / 1e9;
            return format!("{}/s", bytes((self.weight as f64 / seconds) as u64));
        }
        match self.state {
            SampleState::OnCpu => format!("CPU {}", percent(self.cpus)),
            SampleState::OffCpu => format!("{:.1} threads waiting", self.cpus),
            SampleState::Both => format!("{:.1} threads running or waiting", self.cpus),
        }
    }

    /// The total amount. Waits have no samples that could be counted.
    pub(in crate::top) fn amount(&self) -> String {
        if let Some((measure, _)) = self.memory {
            let error = self.error_share().map(|share| format!(" ± {}", percent(share)));
            let is_live = measure == AllocationMeasure::Live;
            let what = if is_live { "allocated and not freed" } else { "allocated" };
            return format!("{}{} {what}", bytes(self.weight), error.unwrap_or_default());
        }
        let seconds = self.cpus * self.duration as f64 / 1e9;
        match self.state {
            SampleState::OnCpu => counted(self.weight, "sample"),
            SampleState::OffCpu => format!("{seconds:.1} s waited"),
            SampleState::Both => format!("{seconds:.1} s of threads"),
        }
    }
}

/// The shown text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::top) struct Page {
    pub(in crate::top) columns: Vec<Column>,
    pub(in crate::top) rows: Vec<Row>,
    /// The flame graph, in place of rows.
    pub(in crate::top) flame: Option<FlameBoxes>,
    /// The text to show without rows.
    pub(in crate::top) empty: &'static str,
    /// The last seconds.
    pub(in crate::top) recent: Load,
    /// The whole.
    pub(in crate::top) overall: Load,
}
