//! The quantities that are counted for a process: their names, units and graphs.

use std::sync::Arc;

use nyquist_convert::event::{CounterGraph, CounterKind, GraphColor};

/// The name of the counter of CPU time, in ms.
pub const CPU_COUNTER: &str = "CPU";

/// The name of the counter of resident memory, in bytes.
pub const MEMORY_COUNTER: &str = "Memory";

/// A quantity that is counted for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Cpu,
    Memory,
    PageFaults,
    MajorPageFaults,
    Read,
    Written,
    ReadFromStorage,
    WrittenToStorage,
    ContextSwitches,
    Threads,
    OpenFiles,
}

/// The number of quantities.
pub(super) const COUNT: usize = Quantity::ALL.len();

impl Quantity {
    /// All of them, in display order.
    pub(super) const ALL: [Self; 11] = [
        Self::Cpu,
        Self::Memory,
        Self::PageFaults,
        Self::MajorPageFaults,
        Self::Read,
        Self::Written,
        Self::ReadFromStorage,
        Self::WrittenToStorage,
        Self::ContextSwitches,
        Self::Threads,
        Self::OpenFiles,
    ];

    /// Whether it is a level, which rises and falls. The others are sums, which only rise.
    pub(super) fn is_level(self) -> bool {
        matches!(self, Self::Memory | Self::Threads | Self::OpenFiles)
    }

    /// Its description in a profile.
    ///
    /// The categories are those of Firefox's own counters. A front end that supports no other description
    /// draws them by category. CPU time is not named `processCPU`, because the front end shows a counter of
    /// that name only on request.
    pub(super) fn kind(self) -> Arc<CounterKind> {
        use GraphColor::{Blue, Green, Grey, Magenta, Orange, Purple, Red, Teal, Yellow};
        let (name, unit, category, color, description) = match self {
            Self::Cpu => (CPU_COUNTER, "ms", "CPU", Grey, "CPU time of all threads"),
            Self::Memory => (MEMORY_COUNTER, "bytes", "Memory", Orange, "Resident memory"),
            Self::PageFaults => ("Page faults", "faults", "Counter", Magenta, "Page faults, minor and major"),
            Self::MajorPageFaults => {
                ("Major page faults", "faults", "Counter", Red, "Page faults that waited for a disk")
            }
            Self::Read => ("Read", "bytes", "Bandwidth", Green, "Bytes that read calls gave, cached or not"),
            Self::Written => ("Written", "bytes", "Bandwidth", Blue, "Bytes that write calls took"),
            Self::ReadFromStorage => {
                ("Read from storage", "bytes", "Bandwidth", Green, "Bytes that a disk had to read")
            }
            Self::WrittenToStorage => {
                ("Written to storage", "bytes", "Bandwidth", Blue, "Bytes that go to a disk sooner or later")
            }
            Self::ContextSwitches => {
                ("Context switches", "switches", "Counter", Yellow, "Context switches of all threads")
            }
            Self::Threads => ("Threads", "threads", "Counter", Purple, "Threads that live"),
            Self::OpenFiles => ("Open files", "files", "Counter", Teal, "Open file descriptors"),
        };
        Arc::new(CounterKind {
            name: name.to_owned(),
            unit: unit.to_owned(),
            category: category.to_owned(),
            description: description.to_owned(),
            graph: if self.is_level() { CounterGraph::Accumulated } else { CounterGraph::Rate },
            color,
            order: self as i32,
            accompanies: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_has_its_own_place_and_name() {
        let kinds = Quantity::ALL.map(Quantity::kind);
        let orders: Vec<_> = kinds.iter().map(|kind| kind.order).collect();
        assert_eq!(orders, (0..COUNT as i32).collect::<Vec<_>>());
        let mut names: Vec<_> = kinds.iter().map(|kind| &kind.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COUNT);
    }
}
