//! Counts lost records by CPU, and assigns them to threads as time.

use super::gap::{Gap, GapCause};
use crate::event::Timestamp;
use crate::processes::thread_time::UsedCpuTime;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The losses of a recording, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// How many records each CPU has lost.
    on_cpus: BTreeMap<Option<u32>, Lost>,
    /// The time of each CPU's last sample. Losses that it reports after that happened later.
    last_samples: FxHashMap<u32, Timestamp>,
    /// The time since which each CPU has taken no samples.
    pauses: BTreeMap<Option<u32>, Timestamp>,
    /// The CPU time of everything that was recorded, in nanoseconds, if the source itself counts it.
    cpu_time_ns: u64,
}

/// How many records were dropped.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// The sum of the loss records.
    reported: u64,
    /// The total that the source itself has counted, if it counts.
    counted: u64,
    /// How many of the reported records are not yet accounted for as time of a thread.
    unshown: u64,
    /// The time of the last loss record.
    until: Timestamp,
}

impl Losses {
    /// Takes as many of a CPU's lost records as fit a thread's time without a sample: the nearest number of
    /// intervals. A thread can have lost them only if its last record is older than the loss record.
    pub(crate) fn take_intervals(&mut self, cpu: Option<u32>, used: UsedCpuTime, interval_ns: u64) -> u64 {
        let mut due = used.ns.saturating_add(interval_ns / 2) / interval_ns;
        let mut taken: u64 = 0;
        // A total without a CPU is of all CPUs.
        let lost_there = self.on_cpus.iter_mut().filter(|(on, _)| cpu.is_none() || **on == cpu);
        for (_, lost) in lost_there.filter(|(_, lost)| used.since < lost.until) {
            let part = due.min(lost.unshown);
            lost.unshown -= part;
            due -= part;
            taken = taken.saturating_add(part);
        }
        taken
    }

    /// The dropped records that no loss record has reported yet, by CPU.
    fn unreported(&self) -> BTreeMap<Option<u32>, u64> {
        let rest = |lost: &Lost| lost.counted.saturating_sub(lost.reported);
        let mut unreported: BTreeMap<_, _> =
            self.on_cpus.iter().map(|(cpu, lost)| (*cpu, rest(lost))).collect();
        // Losses that are counted without a CPU include those that were reported on any CPU beyond its own
        // count.
        let of_cpus = self.on_cpus.iter().filter(|(cpu, _)| cpu.is_some());
        let reported = of_cpus
            .fold(0, |sum: u64, (_, lost)| sum.saturating_add(lost.reported.saturating_sub(lost.counted)));
        if let Some(nowhere) = unreported.get_mut(&None) {
            *nowhere = nowhere.saturating_sub(reported);
        }
        unreported.retain(|_, records| *records > 0);
        unreported
    }

    /// Notes that a CPU has a sample, of any thread.
    pub(crate) fn note_sampled(&mut self, now: Timestamp, cpu: Option<u32>) {
        if let Some(cpu) = cpu {
            self.last_samples.insert(cpu, now);
        }
    }

    /// Notes that records were dropped since the CPU's last sample.
    pub(crate) fn lose(&mut self, now: Timestamp, cpu: Option<u32>, records: u64) -> Gap {
        let lost = self.on_cpus.entry(cpu).or_default();
        lost.reported = lost.reported.saturating_add(records);
        lost.unshown = lost.unshown.saturating_add(records);
        lost.until = now;
        self.gap_of_loss(now, cpu, records)
    }

    fn gap_of_loss(&self, end: Timestamp, cpu: Option<u32>, records: u64) -> Gap {
        let start = cpu.and_then(|cpu| self.last_samples.get(&cpu)).copied();
        Gap { start, end, cpu, cause: GapCause::Lost(records) }
    }

    /// Notes a total of dropped records from one of the source's counters.
    pub(crate) fn count(&mut self, cpu: Option<u32>, records: u64) {
        let lost = self.on_cpus.entry(cpu).or_default();
        lost.counted = lost.counted.saturating_add(records);
    }

    /// Adds CPU time that the source's counters have measured for everything that was recorded.
    pub(crate) fn count_cpu_time(&mut self, used_ns: u64) {
        self.cpu_time_ns = self.cpu_time_ns.saturating_add(used_ns);
    }

    /// The CPU time of everything that was recorded, in nanoseconds. It is 0 if the source does not count it.
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
        Some(Gap { start: Some(start), end: now, cpu, cause: GapCause::Throttled })
    }

    /// Ends all pauses at the end of the recording. Returns the losses without a loss record, because the
    /// last losses have none.
    pub(crate) fn end(&mut self, end: Timestamp) -> Vec<Gap> {
        let pauses = std::mem::take(&mut self.pauses).into_iter();
        let pauses =
            pauses.map(|(cpu, start)| Gap { start: Some(start), end, cpu, cause: GapCause::Throttled });
        let losses = self.unreported().into_iter();
        let losses = losses.map(|(cpu, records)| self.gap_of_loss(end, cpu, records));
        pauses.chain(losses).collect()
    }

    /// The time of the last loss record.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        let last = self.on_cpus.values().map(|lost| lost.until).max();
        last.filter(|at| at.0 > 0)
    }
}
