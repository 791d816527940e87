//! What this machine allows and its settings, queried without changing anything.

use std::ffi::OsStr;
use std::fs;

use super::backend::{self, Backend, BackendChoice};
use super::event_names::EventSources;
use super::limits::{has_capability, kernel_setting};
use super::options::{Options, RecordingTarget};
use super::perf::{Coverage, Notice, Trigger};
use super::ring_limits::{Copies, RingLimits, TOTALS_PAGES};
use super::sys::limits::{descriptors, locked_memory, page_size};
use super::sys::users;
use super::{Command, cpus, kernel, launch};

/// What recording depends on, as it is now for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's release, as in `uname -r`.
    pub kernel: Option<String>,
    /// Whether this process runs as root.
    pub is_root: bool,
    /// The effective capabilities that are relevant for recording.
    pub capabilities: Vec<Capability>,
    /// The kernel's settings.
    pub settings: Settings,
    /// The number of online CPUs.
    pub cpus: usize,
    /// RLIMIT_MEMLOCK in bytes; `None` if it is not available. `u64::MAX` means no limit.
    pub locked_memory: Option<u64>,
    /// The hard limit of open files; `None` if it is not available.
    pub descriptors: Option<u64>,
    /// Whether this process has a seccomp filter (`Seccomp: 2` in `/proc/self/status`).
    pub is_filtered: bool,
    /// Whether `/proc/kallsyms` shows addresses to this process.
    pub shows_kernel_addresses: bool,
    /// Why the kernel's tracepoints cannot be read, and what would permit it.
    pub lack_of_tracepoints: Option<(String, &'static str)>,
    /// The kB of memory per CPU for rings of the largest useful size.
    pub requested_ring_kb: u64,
    /// What `perf_event_open` allows for a launched command, or why it allows nothing.
    pub perf: Result<PerfAccess, AccessDenied>,
    /// Whether a launched command can be traced, or why not.
    pub ptrace: Result<(), AccessDenied>,
}

/// Settings below `/proc/sys/kernel`; `None` for those that the kernel does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `perf_event_paranoid`.
    pub perf_event_paranoid: Option<i64>,
    /// `kptr_restrict`.
    pub kptr_restrict: Option<i64>,
    /// `perf_event_mlock_kb`.
    pub perf_event_mlock_kb: Option<i64>,
    /// `perf_event_max_sample_rate`.
    pub perf_event_max_sample_rate: Option<i64>,
    /// `yama/ptrace_scope`.
    pub ptrace_scope: Option<i64>,
}

impl Settings {
    /// The current settings.
    pub fn now() -> Self {
        Self {
            perf_event_paranoid: kernel_setting("perf_event_paranoid"),
            kptr_restrict: kernel_setting("kptr_restrict"),
            perf_event_mlock_kb: kernel_setting("perf_event_mlock_kb"),
            perf_event_max_sample_rate: kernel_setting("perf_event_max_sample_rate"),
            ptrace_scope: kernel_setting("yama/ptrace_scope"),
        }
    }
}

/// A capability that is relevant for recording (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_PERFMON`: to sample everything (Linux 5.8).
    Perfmon,
    /// `CAP_SYS_PTRACE`: to attach to other users' processes, and read their memory.
    SysPtrace,
    /// `CAP_SYS_ADMIN`: everything that `CAP_PERFMON` allows, and control groups.
    SysAdmin,
    /// `CAP_SYSLOG`: the names of kernel functions, which need their addresses.
    Syslog,
    /// `CAP_IPC_LOCK`: rings of any size.
    IpcLock,
}

impl Capability {
    const ALL: [Self; 5] = [Self::Perfmon, Self::SysPtrace, Self::SysAdmin, Self::Syslog, Self::IpcLock];

    /// The number of the capability's bit (`include/uapi/linux/capability.h`).
    fn number(self) -> u32 {
        match self {
            Self::IpcLock => 14,
            Self::SysPtrace => 19,
            Self::SysAdmin => 21,
            Self::Syslog => 34,
            Self::Perfmon => 38,
        }
    }

    /// The name in capabilities(7).
    pub fn name(self) -> &'static str {
        match self {
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Syslog => "CAP_SYSLOG",
            Self::Perfmon => "CAP_PERFMON",
        }
    }
}

/// What `perf_event_open` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfAccess {
    /// What triggers a sample.
    pub trigger: Trigger,
    /// What the events of a launched command cover.
    pub coverage: Coverage,
    /// Why the command gets no control group, if it may have one.
    pub no_group: Option<String>,
    /// Whether kernel code is sampled.
    pub kernel: bool,
    /// The size of each stack copy in bytes.
    pub stack_bytes: u32,
    /// The size of a CPU's ring for samples in bytes.
    pub ring_bytes: usize,
}

/// Why something is not possible, and what would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDenied {
    /// The reason, as text without a full stop.
    pub reason: String,
    /// Advice for the user.
    pub advice: Vec<String>,
}

impl AccessDenied {
    /// The advice of this refusal and of another, without duplicates.
    pub fn advice_with(&self, other: &Self) -> Vec<String> {
        let others = other.advice.iter().filter(|line| !self.advice.contains(line));
        self.advice.iter().chain(others).cloned().collect()
    }
}

impl From<backend::OpenError> for AccessDenied {
    fn from(error: backend::OpenError) -> Self {
        Self { reason: error.to_string(), advice: error.advice() }
    }
}

impl Machine {
    /// Queries everything. Tries both backends on a process that waits to become a command and never does, so
    /// that the result is the same as for a recording.
    pub fn query() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        // Opening raises this limit.
        let descriptors = descriptors().ok().map(|limit| limit.hard);
        let cpus = online_cpus();
        Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
            is_root: is_root(),
            capabilities: Capability::ALL.into_iter().filter(|it| has_capability(it.number())).collect(),
            settings: Settings::now(),
            cpus,
            locked_memory: locked_memory().ok().map(|limit| limit.soft),
            descriptors,
            is_filtered: is_filtered(&status),
            shows_kernel_addresses: !kernel::addresses_are_hidden(),
            lack_of_tracepoints: EventSources::of_machine().lack_of_tracepoints(),
            requested_ring_kb: ring_kb(cpus),
            perf: try_perf(),
            ptrace: try_ptrace(),
        }
    }

    /// Whether this process has a capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether `kernel.perf_event_paranoid` does not apply to this process.
    pub fn is_privileged(&self) -> bool {
        self.has(Capability::Perfmon) || self.has(Capability::SysAdmin)
    }
}

/// Why the tracepoints of waits are not recorded, although this process may record them, and what would permit
/// it.
pub fn lack_of_wait_tracepoints() -> Option<(String, &'static str)> {
    let capabilities = [Capability::Perfmon, Capability::SysAdmin];
    let may_record = capabilities.into_iter().any(|capability| has_capability(capability.number()));
    EventSources::of_machine().lack_of_tracepoints().filter(|_| may_record)
}

/// Whether a seccomp filter checks each system call.
fn is_filtered(status: &str) -> bool {
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    users::is_root()
}

/// The kB of memory per CPU for rings of the largest useful size.
pub fn requested_ring_kb() -> u64 {
    ring_kb(online_cpus())
}

fn online_cpus() -> usize {
    cpus::online().map_or(1, |cpus| cpus.len())
}

/// The size of the rings if there is no memory limit, with a control page each.
fn ring_kb(cpus: usize) -> u64 {
    const RINGS: usize = 3;
    let page = page_size();
    let plan = RingLimits {
        cpus,
        page,
        bytes: None,
        rate_hz: Options::default().rate_hz,
        copies: Copies::Largest,
        reader_at_once: false,
        has_additional_events: false,
    }
    .plan();
    let pages = plan.sample_pages + plan.sideband_pages.unwrap_or(0) + TOTALS_PAGES + RINGS;
    (pages * page / 1024) as u64
}

fn try_perf() -> Result<PerfAccess, AccessDenied> {
    match try_backend(BackendChoice::Perf)? {
        backend::RecordingOutcome::Perf(outcome) => Ok(PerfAccess {
            trigger: outcome.trigger,
            coverage: outcome.coverage,
            no_group: outcome.notices.into_iter().find_map(|notice| match notice {
                Notice::NoGroup { reason } => Some(reason),
                _ => None,
            }),
            kernel: outcome.kernel,
            stack_bytes: outcome.stack_bytes,
            ring_bytes: outcome.sample_ring_bytes,
        }),
        backend::RecordingOutcome::Ptrace(_) => {
            Err(AccessDenied { reason: "ptrace stood in".to_owned(), advice: vec![] })
        }
    }
}

fn try_ptrace() -> Result<(), AccessDenied> {
    try_backend(BackendChoice::Ptrace).map(drop)
}

/// Prepares a backend for a process that never starts. Both are dropped at the end of this function, the
/// backend first: otherwise, the end of the traced process would wait for its tracer.
fn try_backend(choice: BackendChoice) -> Result<backend::RecordingOutcome, AccessDenied> {
    let no_process = |reason: String| AccessDenied { reason, advice: Vec::new() };
    let command = Command::from_words([OsStr::new("true").to_owned()]);
    let command = command.ok_or_else(|| no_process("there is no command to try".to_owned()))?;
    let child = launch::prepare(&command).map_err(|error| no_process(error.to_string()))?;
    let backend = Backend::open(choice, RecordingTarget::Child(child.pid()), &Options::default(), None)?;
    Ok(backend.outcome())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_distinguished_from_none() {
        let check = |status, expected| assert_eq!(is_filtered(status), expected, "{status}");
        check("NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n", true);
        check("Seccomp:\t0\nSeccomp_filters:\t0\n", false);
        check("", false);
    }

    #[test]
    fn rings_on_many_cpus_are_smaller() {
        assert!(ring_kb(2) > 8 << 10);
        assert!(ring_kb(128) < 10 << 10);
    }

    #[test]
    fn what_is_found_fits_together() {
        let machine = Machine::query();
        assert!(machine.cpus > 0 && machine.kernel.is_some());
        if let Ok(perf) = &machine.perf {
            assert!(perf.stack_bytes > 0 && perf.ring_bytes > 0);
            // Kernel code is sampled if that is allowed, and only then.
            let level = machine.settings.perf_event_paranoid.unwrap_or(i64::MAX);
            assert_eq!(perf.kernel, machine.is_privileged() || level <= 1);
        }
    }
}
