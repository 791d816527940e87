//! Selects samples for formats that cannot distinguish CPU time from waiting.

use nyquist_profile::{Profile, Sample};

/// Accepts the samples on the CPU or, if a profile has none, those of waiting.
pub(crate) fn one_kind(profile: &Profile) -> impl Fn(&Sample) -> bool + use<> {
    let mut samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let has_cpu_time = samples.any(|sample| !sample.off_cpu && sample.weight > 0);
    move |sample| sample.weight > 0 && sample.off_cpu != has_cpu_time
}
