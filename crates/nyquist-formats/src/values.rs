//! Formats whose samples have several values: chooses the value that is read, and adds samples without times.

use nyquist_profile::{AllocationMeasure, Measure, StackId, ThreadIndex, Unit};

use crate::error::ReadError;
use crate::import::Importer;

/// How many values a message lists.
const LISTED: usize = 8;

/// A value that samples have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampleValueKind {
    /// Its name in the file.
    pub name: String,
    pub unit: Unit,
    /// The number of `unit` in one value.
    pub factor: u64,
}

impl SampleValueKind {
    /// A value that counts in its unit.
    pub(crate) fn new(name: &str, unit: Unit) -> Self {
        Self { name: name.to_owned(), unit, factor: 1 }
    }

    /// The measure of a profile that is made from this value.
    pub(crate) fn measure(&self) -> Measure {
        Measure { name: self.name.clone(), unit: self.unit }
    }
}

/// The index of the value with the requested name, or else `default`.
///
/// # Errors
/// There is no value with this name.
pub(crate) fn choose(
    values: &[SampleValueKind],
    requested: Option<&str>,
    default: usize,
) -> Result<usize, ReadError> {
    let Some(name) = requested else { return Ok(default) };
    let of_name = |name: &str| values.iter().position(|value| value.name == name);
    of_name(name).or_else(|| names_of_measure(name).iter().find_map(|name| of_name(name))).ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|value| &*value.name).take(LISTED).collect();
        ReadError::Unsupported(format!("its samples have no value `{name}`, but {}", names.join(", ")))
    })
}

/// The names in files of a measure of allocations.
pub(crate) fn names_of_measure(name: &str) -> &'static [&'static str] {
    match AllocationMeasure::of_name(name) {
        Some(AllocationMeasure::Live) => &["leaked", "end_bytes", "inuse_space"],
        Some(AllocationMeasure::Peak) => &["peak_bytes"],
        Some(AllocationMeasure::Total) => &["allocated", "total_bytes", "alloc_space"],
        Some(AllocationMeasure::LiveBlocks) => &["end_blocks", "inuse_objects"],
        Some(AllocationMeasure::PeakBlocks) => &["peak_blocks"],
        Some(AllocationMeasure::Allocations) => &["total_blocks", "alloc_objects"],
        Some(AllocationMeasure::Temporary) | None => &[],
    }
}

/// Whether a value with this name in a file is one of allocations.
pub(crate) fn is_of_allocations(name: &str) -> bool {
    AllocationMeasure::ALL.iter().any(|measure| names_of_measure(measure.name()).contains(&name))
}

/// Adds consecutive samples to a thread, for formats without times.
pub(crate) struct SampleQueue {
    thread: ThreadIndex,
    time: u64,
}

impl SampleQueue {
    pub(crate) fn new(thread: ThreadIndex) -> Self {
        Self { thread, time: 0 }
    }

    /// Adds a stack with this amount: ns, bytes or things.
    pub(crate) fn add(&mut self, importer: &mut Importer, stack: Option<StackId>, amount: u64) {
        self.add_with(importer, (stack, false), amount);
    }

    /// As [`add`](Self::add), for waiting if the flag beside the stack is set.
    pub(crate) fn add_with(
        &mut self,
        importer: &mut Importer,
        (stack, off_cpu): (Option<StackId>, bool),
        amount: u64,
    ) {
        importer.span(self.thread, self.time, (stack, off_cpu), amount);
        self.time = self.time.saturating_add(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_chosen_by_its_name() {
        let values = [SampleValueKind::new("Ir", Unit::Count), SampleValueKind::new("bytes", Unit::Bytes)];
        assert_eq!(choose(&values, None, 1).unwrap(), 1);
        assert_eq!(choose(&values, Some("Ir"), 1).unwrap(), 0);
        let error = choose(&values, Some("x"), 0).unwrap_err().to_string();
        assert_eq!(error, "its samples have no value `x`, but Ir, bytes");
    }
}
