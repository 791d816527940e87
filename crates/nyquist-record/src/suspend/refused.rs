//! Recorded processes that the system refuses. They are opened again, because one that executes another
//! program may be sampled then.

use std::collections::{BTreeMap, HashSet};

use nyquist_convert::event::Pid;

use super::process::LeftOut;
use super::system::{ListedProcess, SamplingDenied};

/// The most processes that are remembered.
const MAX_REFUSED_PROCESSES: usize = 1000;
/// How long after a refusal the process is opened once more, in nanoseconds. While a program is being
/// executed, the system refuses its process.
const RETRY_AFTER_NS: u64 = 20_000_000;

/// The refused processes, by their numbers.
#[derive(Debug, Default)]
pub(super) struct RefusedProcesses {
    live: BTreeMap<u32, RefusedProcess>,
    /// Those that have ended.
    ended: Vec<LeftOut>,
}

#[derive(Debug)]
struct RefusedProcess {
    listed: ListedProcess,
    /// What [`System::program_stamp`](super::system::System::program_stamp) was when it was refused.
    stamp: Option<u64>,
    retry_at: Option<u64>,
    /// `None` if the system gives no reason, because the process is ending or executes a program.
    left_out: Option<LeftOut>,
}

impl RefusedProcesses {
    /// Notes that a process was refused.
    pub(super) fn note(
        &mut self,
        listed: ListedProcess,
        denied: SamplingDenied,
        stamp: Option<u64>,
        now: u64,
    ) {
        let known = self.live.get(&listed.pid);
        if known.is_none() && self.live.len() + self.ended.len() >= MAX_REFUSED_PROCESSES {
            return;
        }
        // Each program gets one more attempt.
        let is_same = known.is_some_and(|known| known.stamp == stamp && known.listed.began == listed.began);
        let left_out = match denied {
            SamplingDenied::Gone => None,
            SamplingDenied::Refused { reason, advice } => {
                Some(LeftOut { pid: Pid(listed.pid), reason, advice })
            }
        };
        let retry_at = (!is_same).then_some(now.saturating_add(RETRY_AFTER_NS));
        self.live.insert(listed.pid, RefusedProcess { listed, stamp, retry_at, left_out });
    }

    /// The processes that may be sampled by now, because they have another stamp, or because their time has come.
    pub(super) fn due(&self, now: u64, mut stamp_of: impl FnMut(u32) -> Option<u64>) -> Vec<ListedProcess> {
        let is_due = |process: &&RefusedProcess| {
            process.retry_at.is_some_and(|time| now >= time) || stamp_of(process.listed.pid) != process.stamp
        };
        self.live.values().filter(is_due).map(|process| process.listed).collect()
    }

    /// Removes a process that is sampled now.
    pub(super) fn remove(&mut self, pid: u32) {
        self.live.remove(&pid);
    }

    /// Notes that all but these processes have ended.
    pub(super) fn keep(&mut self, live: &HashSet<u32>) {
        let ended = self.live.extract_if(.., |pid, _| !live.contains(pid));
        self.ended.extend(ended.filter_map(|(_, process)| process.left_out));
    }

    /// The processes that could not be sampled at last, by their numbers.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let live = self.live.values().filter_map(|process| process.left_out.as_ref());
        let mut all: Vec<_> = self.ended.iter().chain(live).cloned().collect();
        all.sort_by_key(|left_out| left_out.pid.0);
        all
    }
}
