//! The account stage: how much time each sample stands for, and how much time has no sample.

use super::losses::Losses;
use super::off_cpu::OffCpuIntervals;
use super::on_cpu::OnCpu;
use super::share::{Activity, Share};
use super::wait_functions::WaitFunctions;
use crate::event::{Sample, SampleState, Tid, Timestamp};
use crate::processes::process::Process;
use crate::processes::remainder::{CpuTimeRemainder, ProgramRemainders};
use crate::processes::thread::{Thread, UsedCpuTime};
use crate::statistics::Statistics;
use nyquist_symbols::KernelSymbols;

/// The time of threads, and of the recording, that samples stand for.
#[derive(Debug)]
pub(crate) struct Accounting {
    /// The time that a sample of weight 1 stands for, in nanoseconds.
    interval: u64,
    /// Whether the source may sample the kernel.
    kernel_permitted: bool,
    pub(crate) statistics: Statistics,
    pub(crate) losses: Losses,
    /// The remainders of threads that have ended.
    remainders: ProgramRemainders,
    pub(crate) off_cpu: OffCpuIntervals,
    pub(crate) wait_functions: WaitFunctions,
    pub(crate) on_cpu: OnCpu,
}

impl Accounting {
    /// The accounting of a recording that has no events yet. Samples of weight 1 stand for `interval`
    /// nanoseconds. The reasons of waits are found by the functions of this kernel.
    pub(crate) fn new(interval: u64, kernel_permitted: bool, kernel: Option<KernelSymbols>) -> Self {
        Self {
            interval,
            kernel_permitted,
            statistics: Statistics::default(),
            losses: Losses::default(),
            remainders: ProgramRemainders::default(),
            off_cpu: OffCpuIntervals::default(),
            wait_functions: WaitFunctions::new(kernel),
            on_cpu: OnCpu::default(),
        }
    }

    /// The CPU time that a thread has used since its last sample. Returns that time less the time of lost
    /// records, and the number of intervals with lost records.
    pub(crate) fn used_by_sample(
        &mut self,
        thread: &mut Thread,
        (sample, now): (&Sample, Timestamp),
        cpu: Option<u32>,
    ) -> (u64, u32) {
        let period = sample.period_ns.max(1);
        let used = match sample.cpu_time_ns {
            Some(since) if sample.counts_anew => thread.later_cpu_delta(cpu, since, now),
            Some(total) => thread.cpu_delta(cpu, total, now),
            None => UsedCpuTime { ns: period, since: now },
        };
        let beyond = UsedCpuTime { ns: used.ns.saturating_sub(period), ..used };
        let (lost_ns, lost) = self.take_lost(cpu, beyond);
        (used.ns - lost_ns, lost)
    }

    /// The part of a thread's CPU time whose samples were lost, in nanoseconds and in intervals.
    fn take_lost(&mut self, cpu: Option<u32>, used: UsedCpuTime) -> (u64, u32) {
        let intervals = self.losses.take_intervals(cpu, used, self.interval);
        ((u64::from(intervals) * self.interval).min(used.ns), intervals)
    }

    /// The share of a sample after `used` nanoseconds of CPU time. `None` if its weight would be zero.
    pub(crate) fn share(&self, thread: &mut Thread, sample: &Sample, used: u64) -> Option<Share> {
        let waited = match sample.state {
            SampleState::Clocked => return Some(self.clocked_share(thread, sample, used)),
            SampleState::Running { waited_ns }
            | SampleState::Runnable { waited_ns }
            | SampleState::Waiting { waited_ns, .. } => waited_ns,
        };
        thread.unsampled.add(used);
        thread.waited.add(waited);
        thread.unshown_ns = thread.unshown_ns.saturating_add(used);
        let on_cpu = match sample.state {
            SampleState::Running { .. } => thread.unsampled.take_nearest(self.interval),
            _ => 0,
        };
        // The thread has hardly run, so it waits for a CPU, even if it seemed to run.
        let weight = if on_cpu > 0 { on_cpu } else { thread.waited.take_nearest(self.interval) };
        (weight > 0).then(|| Share {
            weight,
            cpu_delta: std::mem::take(&mut thread.unshown_ns),
            activity: match sample.state {
                _ if on_cpu > 0 => Activity::Ran,
                SampleState::Waiting { reason, .. } => Activity::Waited(reason),
                _ => Activity::Runnable,
            },
            not_permitted: 0,
        })
    }

    /// The share of a sample that the clock of its own thread has triggered.
    fn clocked_share(&self, thread: &mut Thread, sample: &Sample, used: u64) -> Share {
        let (interval, period) = (self.interval, sample.period_ns.max(1));
        let activity = Activity::Ran;
        if self.kernel_permitted {
            let weight = thread.unsampled.weigh(used, interval);
            return Share { weight, cpu_delta: used, activity, not_permitted: 0 };
        }
        // Time beyond the sample's own period was spent in the kernel.
        thread.unsampled.add(used.saturating_sub(period));
        let not_permitted = self.take_not_permitted(thread);
        let shown = u64::from(not_permitted) * interval;
        let weight = CpuTimeRemainder::default().weigh(period, interval);
        Share { weight, cpu_delta: used.saturating_sub(shown), activity, not_permitted }
    }

    /// The thread's whole intervals without a sample. It spent them in the kernel, if the kernel may not be
    /// sampled.
    pub(crate) fn take_not_permitted(&self, thread: &mut Thread) -> u32 {
        if self.kernel_permitted { 0 } else { thread.unsampled.take_intervals(self.interval) }
    }

    /// Accounts for the end of a thread, given the CPU time that it used in all. Its time since its last
    /// sample was never sampled. Returns the number of intervals of that time whose records were lost.
    pub(crate) fn used_at_end(
        &mut self,
        thread: &mut Thread,
        (total, now): (u64, Timestamp),
        cpu: Option<u32>,
    ) -> u32 {
        let used = thread.cpu_delta(cpu, total, now);
        let (lost_ns, lost) = self.take_lost(cpu, used);
        thread.unsampled.add(used.ns - lost_ns);
        lost
    }

    /// Accounts for the end of a thread. Returns the whole intervals that it and other ended threads of its
    /// program have left over.
    pub(crate) fn settle(&mut self, process: &mut Process, tid: Tid, now: Timestamp) -> u32 {
        let program = std::mem::take(&mut process.name);
        let left = &mut process.thread(tid, now).unsampled;
        let intervals = self.remainders.settle(&program, left, self.interval);
        process.name = program;
        intervals
    }

    /// Adds nanoseconds of waiting. Returns the intervals of the thread's waiting that no sample stands for.
    pub(crate) fn waited(&self, thread: &mut Thread, waited_ns: u64) -> u32 {
        thread.waited.add(waited_ns);
        thread.waited.take_nearest(self.interval)
    }

    /// The intervals of all CPU time that the source has counted, less those that have samples in the
    /// profile.
    pub(crate) fn rest(&self, shown: u64) -> Option<u32> {
        let rest = (self.losses.cpu_time_ns() / self.interval).saturating_sub(shown);
        u32::try_from(rest).ok().filter(|rest| *rest > 0)
    }
}
