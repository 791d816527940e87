//! Facts about the end of a recording that are not in its profile: processes that still run, and why a
//! profile is empty.

use crate::number::time_span;
use crate::shell;
use crate::system::abilities::WITHOUT_SAMPLES;
use crate::system::processes::process_state;
use nyquist_profile::{ExtraInfo, well_known};
use std::time::Duration;

/// The end of a recording.
pub(super) struct Ending<'a> {
    /// The command's CPU time by the kernel's accounting, if all of it was to be recorded.
    pub(crate) used: Option<Duration>,
    /// The descendants of the recorded processes that still run.
    pub(crate) live: &'a [u32],
    /// The attached processes.
    pub(crate) attached: &'a [u32],
    /// Whether the profile shows time of the kernel that may not be sampled.
    pub(crate) kernel_not_permitted: bool,
}

/// The maximum number of processes that a line names.
const MAX_NAMED_PROCESSES: usize = 12;

impl Ending<'_> {
    /// The line about processes that still run, and how to record them.
    pub(crate) fn line(&self) -> String {
        let notice =
            "Processes that were started during the recording are still running, and are no longer recorded";
        if self.live.is_empty() {
            return notice.to_owned();
        }
        let all = if self.live.len() > MAX_NAMED_PROCESSES { " some of" } else { "" };
        let command = shell::nyquist(["record", "-p", &pid_list(self.live)]);
        format!("{notice}: `{command}` records{all} them")
    }

    /// The reason why a profile is empty.
    pub(crate) fn why_nothing(&self, interval_ns: u64, cpu_time_ns: u64) -> String {
        self.why_nothing_where(interval_ns, cpu_time_ns, process_state)
    }

    /// The line of the profile about that, for people who look at it later.
    pub(crate) fn nothing_sampled(&self, interval_ns: u64, cpu_time_ns: Option<u64>) -> ExtraInfo {
        let recorded = cpu_time_ns.unwrap_or(0);
        let used = self.used.map_or(recorded, |used| used.as_nanos() as u64).max(recorded);
        let why = self.why_nothing(interval_ns, recorded);
        let figures =
            format!("{} of CPU time used, one sample each {}", time_span(used), time_span(interval_ns));
        ExtraInfo {
            section: "Recording".to_owned(),
            label: well_known::NOTHING_SAMPLED.to_owned(),
            value: format!("{why} ({figures})"),
        }
    }

    fn why_nothing_where(
        &self,
        interval_ns: u64,
        cpu_time_ns: u64,
        state: impl Fn(u32) -> Option<char>,
    ) -> String {
        let in_state = |states: [char; 2]| {
            self.attached.iter().copied().find(|pid| state(*pid).is_some_and(|state| states.contains(&state)))
        };
        if !self.live.is_empty() {
            return "the command has ended at once, and works in processes that it left running (a daemon does so); -d SECONDS records these, too"
                .to_owned();
        }
        if let Some(pid) = in_state(['T', 't']) {
            return format!("process {pid} is stopped; `kill -CONT {pid}` continues it");
        }
        if let Some(pid) = in_state(['Z', 'X']) {
            return format!("process {pid} has ended, and is a zombie until its parent waits for it");
        }
        if self.kernel_not_permitted {
            return "it was hardly ever in its own code, but in the kernel, which you may not sample"
                .to_owned();
        }
        let used_ns = self.used.map_or(cpu_time_ns, |used| used.as_nanos() as u64).max(cpu_time_ns);
        if used_ns == 0 && !self.attached.is_empty() {
            return "it slept all the time".to_owned();
        }
        // The kernel's accounting of a command includes the time to start it.
        if used_ns < 2 * interval_ns {
            return "it used hardly more CPU time than a sampling interval, or less".to_owned();
        }
        WITHOUT_SAMPLES.to_owned()
    }
}

/// The ids of processes in the form of options; of many, only the first ones.
pub(crate) fn pid_list(pids: &[u32]) -> String {
    pids.iter().take(MAX_NAMED_PROCESSES).map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(live: &[u32], attached: &[u32], used_ms: u64, state: Option<char>) -> String {
        let used = Some(Duration::from_millis(used_ms));
        let ending = Ending { used, live, attached, kernel_not_permitted: false };
        ending.why_nothing_where(1_000_000, 0, |_| state)
    }

    #[test]
    fn an_empty_profile_has_a_reason() {
        assert!(why(&[7], &[], 1, None).contains("left running"));
        assert_eq!(why(&[], &[7], 0, Some('T')), "process 7 is stopped; `kill -CONT 7` continues it");
        assert!(why(&[], &[7], 0, Some('Z')).contains("zombie"));
        assert_eq!(why(&[], &[7], 0, Some('S')), "it slept all the time");
        assert_eq!(why(&[], &[], 1, None), "it used hardly more CPU time than a sampling interval, or less");
        assert!(why(&[], &[], 30, None) == WITHOUT_SAMPLES);
        let ending = Ending { used: None, live: &[], attached: &[], kernel_not_permitted: true };
        assert!(
            ending.why_nothing(1_000_000, 600_000_000).contains("in the kernel, which you may not sample")
        );
    }

    #[test]
    fn who_runs_on_is_named_with_what_records_it() {
        let ending = Ending { used: None, live: &[12, 13], attached: &[], kernel_not_permitted: false };
        assert!(
            ending.line().ends_with("recorded: `nyquist record -p 12,13` records them"),
            "{}",
            ending.line()
        );
        let many: Vec<u32> = (1..=20).collect();
        let ending = Ending { used: None, live: &many, attached: &[], kernel_not_permitted: false };
        assert!(ending.line().ends_with("11,12` records some of them"), "{}", ending.line());
    }
}
