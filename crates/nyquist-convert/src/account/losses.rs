//! What the source dropped, and when it paused.

use super::gap::Gap;
use crate::event::Timestamp;
use crate::processes::thread::Used;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What is known of the losses of a recording.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// How many records each CPU has lost.
    on_cpus: BTreeMap<Option<u32>, Lost>,
    /// When each CPU had its last sample: what it lost, it lost later.
    last_samples: FxHashMap<u32, Timestamp>,
    /// Since when each CPU takes no samples.
    pauses: BTreeMap<Option<u32>, Timestamp>,
    /// What all that was recorded has used of the CPUs, in nanoseconds, as the source itself has counted, where it does.
    cpu_time_ns: u64,
}

/// How many records were dropped.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// As was told each time that some were.
    told: u64,
    /// As the source itself has counted in all, where it does.
    counted: u64,
    /// How many of those that were told have not become time of a thread.
    unshown: u64,
    /// When the last ones were told.
    until: Timestamp,
}

impl Losses {
    /// Takes as many of the records that were lost on a CPU as a thread was due in time for which it has no sample: the
    /// nearest number of intervals. Only a thread that was last heard of before they were told can have lost them.
    pub(crate) fn take_intervals(&mut self, cpu: Option<u32>, used: Used, interval_ns: u64) -> u32 {
        let Some(lost) = self.on_cpus.get_mut(&cpu).filter(|lost| used.since < lost.until) else { return 0 };
        let due = used.ns.saturating_add(interval_ns / 2) / interval_ns;
        let taken = u32::try_from(due.min(lost.unshown)).unwrap_or(u32::MAX);
        lost.unshown -= u64::from(taken);
        taken
    }

    /// How many records were dropped that nobody told of when they were, by CPU.
    fn untold(&self) -> BTreeMap<Option<u32>, u64> {
        let rest = |lost: &Lost| lost.counted.saturating_sub(lost.told);
        let mut untold: BTreeMap<_, _> = self.on_cpus.iter().map(|(cpu, lost)| (*cpu, rest(lost))).collect();
        // Of what was counted on no CPU, those were told of that were told of on any.
        let of_cpus = self.on_cpus.iter().filter(|(cpu, _)| cpu.is_some());
        let told =
            of_cpus.fold(0, |sum: u64, (_, lost)| sum.saturating_add(lost.told.saturating_sub(lost.counted)));
        if let Some(nowhere) = untold.get_mut(&None) {
            *nowhere = nowhere.saturating_sub(told);
        }
        untold.retain(|_, records| *records > 0);
        untold
    }

    /// A CPU has a sample, whoever's.
    pub(crate) fn note_sampled(&mut self, now: Timestamp, cpu: Option<u32>) {
        if let Some(cpu) = cpu {
            self.last_samples.insert(cpu, now);
        }
    }

    /// Records were dropped since the CPU's last sample.
    pub(crate) fn lose(&mut self, now: Timestamp, cpu: Option<u32>, records: u64) -> Gap {
        let lost = self.on_cpus.entry(cpu).or_default();
        lost.told = lost.told.saturating_add(records);
        lost.unshown = lost.unshown.saturating_add(records);
        lost.until = now;
        self.gap_of_loss(now, cpu, records)
    }

    fn gap_of_loss(&self, end: Timestamp, cpu: Option<u32>, records: u64) -> Gap {
        let start = cpu.and_then(|cpu| self.last_samples.get(&cpu)).copied();
        Gap { start, end, cpu, records: Some(records) }
    }

    /// One of the source's counters says how much it has dropped in all.
    pub(crate) fn count(&mut self, cpu: Option<u32>, records: u64) {
        let lost = self.on_cpus.entry(cpu).or_default();
        lost.counted = lost.counted.saturating_add(records);
    }

    /// The source's counters say what all that was recorded has used of the CPUs.
    pub(crate) fn count_cpu_time(&mut self, used_ns: u64) {
        self.cpu_time_ns = self.cpu_time_ns.saturating_add(used_ns);
    }

    /// What all that was recorded has used of the CPUs, in nanoseconds; 0 where the source does not count.
    pub(crate) fn cpu_time_ns(&self) -> u64 {
        self.cpu_time_ns
    }

    /// A CPU takes no samples from now on.
    pub(crate) fn pause(&mut self, now: Timestamp, cpu: Option<u32>) {
        self.pauses.entry(cpu).or_insert(now);
    }

    /// A CPU takes samples again.
    pub(crate) fn resume(&mut self, now: Timestamp, cpu: Option<u32>) -> Option<Gap> {
        let start = self.pauses.remove(&cpu)?;
        Some(Gap { start: Some(start), end: now, cpu, records: None })
    }

    /// Ends all pauses with the recording, and tells of the losses that nobody has told of: the last ones have no record.
    pub(crate) fn end(&mut self, end: Timestamp) -> Vec<Gap> {
        let pauses = std::mem::take(&mut self.pauses).into_iter();
        let pauses = pauses.map(|(cpu, start)| Gap { start: Some(start), end, cpu, records: None });
        let losses = self.untold().into_iter();
        let losses = losses.map(|(cpu, records)| self.gap_of_loss(end, cpu, records));
        pauses.chain(losses).collect()
    }

    /// When the last records were lost of which was told.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        let last = self.on_cpus.values().map(|lost| lost.until).max();
        last.filter(|at| at.0 > 0)
    }
}
