//! The events of a perf.data file that is written: what its samples count, and waiting.

use nyquist_perf::file::WrittenEvent;
use nyquist_perf::{AttrFlags, EventAttr, SampleType};
use nyquist_profile::Profile;

use super::super::choose::OFF_CPU_EVENT;

/// The numbers of the events.
pub(super) const SAMPLES_ID: u64 = 1;
pub(super) const OFF_CPU_ID: u64 = 2;

/// `PERF_TYPE_HARDWARE`.
const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_BPF_OUTPUT`, of which a program says what it means: `perf record --off-cpu` writes it, too.
const BPF_OUTPUT: u64 = 10;

/// Events that have numbers of their own. Cycles are not among them: readers take them for CPU time.
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

/// The event of the samples, and that of waiting where there is any.
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

/// What is asked for by an event that gives what a profile has.
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
        // With a frequency each sample says how many events it stands for.
        flags: if measure.is_cpu_time() { flags } else { flags.with(AttrFlags::FREQ) },
        ..EventAttr::default()
    }
}
