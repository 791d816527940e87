//! The kernel's own counts for each thread, which need no perf event (proc_pid_schedstat(5),
//! proc_pid_stat(5), proc_pid_status(5)).

use std::fs;
use std::time::Duration;

use nyquist_convert::ProcessFile;

use crate::linux::{proc, target_access};

/// The kernel's counts for a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadAccount {
    /// The CPU time, in user code and in the kernel.
    pub cpu_time: Duration,
    /// Page faults that did not read from a disk.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// How often it gave up its CPU or lost it.
    pub context_switches: u64,
}

impl ThreadAccount {
    /// Reads the counts of a live thread; `None` if the kernel does not provide all of them.
    pub(super) fn read(pid: u32, tid: u32) -> Option<Self> {
        let file = |name: &str| fs::read(format!("/proc/{pid}/task/{tid}/{name}")).ok();
        let stat = target_access::process_file(pid, Some(tid), ProcessFile::Stat).ok()?;
        Self::parse(&file("schedstat")?, &stat, &file("status")?)
    }

    fn parse(schedstat: &[u8], stat: &[u8], status: &[u8]) -> Option<Self> {
        let (minor_faults, major_faults) = proc::faults(stat)?;
        let status = String::from_utf8_lossy(status);
        let switches = |name: &str| -> Option<u64> {
            status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        let voluntary = switches("voluntary_ctxt_switches:")?;
        let cpu_ns = std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Self {
            cpu_time: Duration::from_nanos(cpu_ns),
            minor_faults,
            major_faults,
            context_switches: voluntary.saturating_add(switches("nonvoluntary_ctxt_switches:")?),
        })
    }

    /// The counts since an earlier reading.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu_time: self.cpu_time.saturating_sub(before.cpu_time),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            context_switches: self.context_switches.saturating_sub(before.context_switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = b"7 (a) b) S 1 7 7 0 -1 4194304 123 999 45 999 10 20 0 0 20 0 1 0 100 0 0";
    const STATUS: &[u8] = b"Name:\tx\nvoluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t12\n";

    #[test]
    fn the_kernels_account_of_a_thread_is_read() {
        let account = ThreadAccount::parse(b"5000 60 7\n", STAT, STATUS).unwrap();
        let expected = ThreadAccount {
            cpu_time: Duration::from_micros(5),
            minor_faults: 123,
            major_faults: 45,
            context_switches: 42,
        };
        assert_eq!(account, expected);
        assert_eq!(account.since(account), ThreadAccount::default());
        assert_eq!(ThreadAccount::parse(b"", STAT, STATUS), None);
        assert_eq!(ThreadAccount::parse(b"1 2 3", b"7 (x", STATUS), None);
        assert_eq!(ThreadAccount::parse(b"1 2 3", STAT, b"voluntary_ctxt_switches:\t-1\n"), None);
    }

    #[test]
    fn this_thread_has_an_account() {
        let pid = std::process::id();
        assert!(ThreadAccount::read(pid, pid).is_some());
        assert_eq!(ThreadAccount::read(pid, u32::MAX >> 1), None);
    }
}
