//! Whether samples are of threads that ran, or of threads that waited.

use nyquist_profile::Sample;

/// Whether a thread ran or waited when it was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleState {
    /// It ran: CPU time.
    #[default]
    OnCpu,
    /// It waited.
    OffCpu,
    /// Either: wall time.
    Both,
}

impl SampleState {
    /// Whether the sample is of a thread in that state.
    pub fn accepts(self, sample: &Sample) -> bool {
        self.includes(sample.off_cpu)
    }

    /// Whether the state includes threads off the CPU (or on it).
    pub(crate) fn includes(self, off_cpu: bool) -> bool {
        match self {
            Self::OnCpu => !off_cpu,
            Self::OffCpu => off_cpu,
            Self::Both => true,
        }
    }
}
