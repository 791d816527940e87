//! Selectors of events: the values of `perf_event_attr` that name one, with its place and CPUs.

use std::ffi::CString;
use std::io;

use super::probe::Probe;

/// The kernel's identification of something that it can count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`, `config1` and `config2`.
    pub config: [u64; 3],
    /// The place in a file, for a probe.
    pub probe: Option<Probe>,
    /// The only CPUs on which the counting unit counts, if it is limited to some.
    pub cpus: Option<Vec<u32>>,
}

impl Selector {
    pub(super) fn new(kind: u32, config: u64) -> Self {
        Self { kind, config: [config, 0, 0], probe: None, cpus: None }
    }

    /// The path of the probe's file, for the kernel. `None` if it is no probe.
    ///
    /// # Errors
    /// The kernel cannot be given the open file.
    pub(crate) fn path_for_kernel(&self) -> io::Result<Option<CString>> {
        self.probe.as_ref().map(|probe| probe.file.path_for_kernel()).transpose()
    }
}
