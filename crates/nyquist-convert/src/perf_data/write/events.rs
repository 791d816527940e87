//! The events of a written perf.data file: what its samples count, and waiting.

use nyquist_perf::file::WrittenEvent;
use nyquist_perf::{AttrFlags, EventAttr, SampleType};
use nyquist_profile::Profile;

use super::super::choose::OFF_CPU_EVENT;

/// The ids of the events.
pub(super) const SAMPLES_ID: u64 = 1;
pub(super) const OFF_CPU_ID: u64 = 2;

/// `PERF_TYPE_HARDWARE`.
const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_BPF_OUTPUT`, whose meaning is defined by the program that writes it. `perf record
/// --off-cpu` also uses it.
const BPF_OUTPUT: u64 = 10;

/// Events that have their own types and configs. Cycles are not among them, because readers treat them as CPU
/// time.
const KNOWN: [(&str, u32, u64); 11] = [
    ("page-faults", SOFTWARE, 2),
    ("context-switches", SOFTWARE, 3),
    ("cpu-migrations", SOFTWARE, 4),
    ("minor-faults", SOFTWARE, 5),
    ("major-faults", SOFTWARE, 6),
    ("alignment-faults", SOFTWARE, 7),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branches", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
];

/// The event of the samples, and the event of waiting if the profile has waits.
pub(super) fn events(profile: &Profile, has_kernel: bool) -> Vec<WrittenEvent> {
    let attr = samples_attr(profile, has_kernel);
    let measure = &profile.meta().measure;
    let name = if measure.is_cpu_time() { "cpu-clock" } else { &measure.name };
    let samples = WrittenEvent { attr, name: name.to_owned(), ids: vec![(SAMPLES_ID, None)] };
    let waits = WrittenEvent {
        attr: EventAttr { kind: SOFTWARE, config: BPF_OUTPUT, sample_period: 1, ..attr },
        name: OFF_CPU_EVENT.to_owned(),
        ids: vec![(OFF_CPU_ID, None)],
    };
    let mut all = profile.threads().iter().flat_map(|thread| &thread.samples);
    let has_waits = all.any(|sample| sample.off_cpu && sample.weight > 0);
    [samples].into_iter().chain(has_waits.then_some(waits)).collect()
}

/// The attributes of an event whose samples would give this profile.
fn samples_attr(profile: &Profile, has_kernel: bool) -> EventAttr {
    let measure = &profile.meta().measure;
    let known = KNOWN.iter().find(|(name, ..)| *name == measure.name);
    let (kind, config) = match known {
        _ if measure.is_cpu_time() => (SOFTWARE, CPU_CLOCK),
        Some(&(_, kind, config)) => (kind, config),
        None => (SOFTWARE, BPF_OUTPUT),
    };
    let flags =
        [AttrFlags::MMAP, AttrFlags::MMAP2, AttrFlags::COMM, AttrFlags::TASK, AttrFlags::SAMPLE_ID_ALL];
    let kernel = if has_kernel { AttrFlags::KSYMBOL } else { AttrFlags::EXCLUDE_KERNEL };
    let flags = flags.into_iter().fold(kernel, AttrFlags::with);
    EventAttr {
        kind,
        config,
        sample_period: profile.meta().interval.max(1),
        sample_type: SampleType::IDENTIFIER
            .with(SampleType::IP)
            .with(SampleType::TID)
            .with(SampleType::TIME)
            .with(SampleType::PERIOD)
            .with(SampleType::CALLCHAIN),
        // With a frequency, each sample has its own period.
        flags: if measure.is_cpu_time() { flags } else { flags.with(AttrFlags::FREQ) },
        ..EventAttr::default()
    }
}
