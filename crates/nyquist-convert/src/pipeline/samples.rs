//! Samples, and the time of threads without one.

use super::Pipeline;
use crate::account::accounting::Unsampled;
use crate::account::share::Activity;
use crate::build::sample_row::SampleRow;
use crate::event::{Pid, Sample, Tid, Timestamp};
use crate::unwind::truncation::Truncation;
use nyquist_profile::{self as profile, well_known};

/// How long after a process's end the last total of one of its threads comes, in nanoseconds.
const TOTALS_COME_WITHIN_NS: u64 = 100_000_000;

impl Pipeline {
    /// A thread was observed.
    pub(super) fn sample(&mut self, now: Timestamp, cpu: Option<u32>, mut sample: Sample) {
        self.account.note_sampled(now, cpu);
        self.account.set_period(&mut sample);
        if self.processes.replace_released_tid(&mut sample, cpu)
            && self.is_kept(sample.pid, now)
            && self.selects((sample.pid, sample.tid), cpu, now)
        {
            self.requested_sample(now, cpu, &sample);
        }
        if let Some(recycler) = &mut self.recycler {
            recycler.take(sample);
        }
    }

    fn requested_sample(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        if self.shape.waits {
            self.off_cpu.arrive(sample.tid);
        }
        let id = (sample.pid, sample.tid);
        if self.sink.is_left_out(id) {
            return;
        }
        let thread = self.processes.thread(now, id);
        let (used, lost) = self.account.used_by_sample(thread, (sample, now), cpu);
        self.add_sample_without_stack(now, id, well_known::NOT_SAMPLED, lost);
        let process = self.processes.process(id.0, now);
        let Some(share) = self.account.share(process, (sample, now), used) else { return };
        self.add_sample_without_stack(now, id, well_known::KERNEL_NOT_PERMITTED, share.not_permitted);
        self.walker.note_sample(sample.tid, now);
        let truncated = self.walker.walk((sample, now), &mut self.processes);
        self.place_frames(now, sample, truncated);
        self.account.count_sample(truncated.is_some());
        let row = SampleRow {
            thread: self.sink.thread_row(now, id, &mut self.processes),
            on_cpu: self.sink.cpu_track(now, cpu, id, &mut self.processes),
            sample: profile::Sample {
                time: self.sink.time(now),
                cpu_delta: share.cpu_delta,
                stack: None,
                weight: share.weight,
                off_cpu: share.activity != Activity::Ran,
            },
            waits_for: Self::label_of(share.activity),
        };
        self.sink.add_sample(row, sample.pid, now, &mut self.processes);
    }

    /// The innermost function of the stack of a thread that did not run. It is needed because a thread that
    /// waits for a CPU is not in a function that waits.
    fn label_of(activity: Activity) -> Option<String> {
        match activity {
            Activity::Ran => None,
            Activity::Runnable => Some(well_known::RUNNABLE.to_owned()),
            Activity::Waited(reason) => reason.map(|reason| well_known::waiting_for(reason.text())),
        }
    }

    /// Looks up the stack whose frames the walker has found.
    pub(super) fn place_frames(&mut self, now: Timestamp, sample: &Sample, truncated: Option<Truncation>) {
        if self.shape.fold_recursive_prefix {
            self.walker.fold_recursive_prefix();
        }
        self.sink.place_stack((sample, now), truncated, self.walker.frames(), &mut self.processes);
    }

    /// Adds a sample whose stack is only a name.
    fn add_sample_without_stack(&mut self, now: Timestamp, id: (Pid, Tid), label: &str, weight: u64) {
        self.sink.add_sample_without_stack(now, id, (label, weight), &mut self.processes);
    }

    /// The CPU time that a thread has used in all when it ended, or so far, is known.
    pub(super) fn total(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid), total: u64) {
        if !self.selects(id, cpu, now) || self.sink.is_left_out(id) {
            return;
        }
        let process = self.processes.process(id.0, now);
        if let Some(end) = process.end
            && self.ended.back() != Some(&(end, id.0))
        {
            self.ended.push_back((end, id.0));
        }
        let unsampled = self.account.count_total(process, id.1, (total, now), cpu);
        self.add_unsampled(now, id, unsampled);
    }

    /// Accounts for the processes that have ended some time before `now`, so that all totals of their threads
    /// are known.
    pub(super) fn settle_ended_processes(&mut self, now: Timestamp) {
        let is_due = |(end, _): &mut (Timestamp, Pid)| end.0.saturating_add(TOTALS_COME_WITHIN_NS) < now.0;
        while let Some((end, pid)) = self.ended.pop_front_if(is_due) {
            if self.processes.end_of(pid) == Some(end) {
                self.settle_process(pid, end);
            }
        }
    }

    /// Accounts for the process that had the pid of a new one.
    pub(super) fn settle_former_process(&mut self, pid: Pid) {
        if let Some(end) = self.processes.end_of(pid) {
            self.settle_process(pid, end);
        }
    }

    /// Accounts for all processes at the end of the recording.
    pub(super) fn settle_all_processes(&mut self) {
        for pid in self.processes.with_unsampled_time() {
            let end = self.processes.process(pid, self.last_time).end;
            self.settle_process(pid, end.unwrap_or(self.last_time));
        }
    }

    fn settle_process(&mut self, pid: Pid, end: Timestamp) {
        let process = self.processes.process(pid, end);
        let unsampled = self.account.end_process(process);
        // The time of a process is that of its only thread with samples: others may not have been recorded.
        let tid = process.only_thread_with_row().unwrap_or(Tid(pid.0));
        self.add_unsampled(end, (pid, tid), unsampled);
    }

    fn add_unsampled(&mut self, now: Timestamp, id: (Pid, Tid), unsampled: Unsampled) {
        let Unsampled { lost, not_permitted, left } = unsampled;
        self.add_sample_without_stack(now, id, well_known::NOT_SAMPLED, lost);
        self.add_sample_without_stack(now, id, well_known::KERNEL_NOT_PERMITTED, not_permitted);
        self.add_sample_without_stack(now, id, well_known::NOT_SAMPLED, left);
    }
}
