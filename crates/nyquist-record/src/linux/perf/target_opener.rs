//! Opens the events of a target, and selects its samples.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use nyquist_convert::ProcessFilter;
use nyquist_convert::event::Pid;

use super::attr::{CommonAttr, Features};
use super::event_opener::{EventOpener, OpenEvents};
use super::open_error::{OpenError, system_error};
use super::outcome::{Coverage, Notice};
use super::refusals::{answering, cpus_may_be_watched};
use super::scope::RecordedScope;
use crate::cpu_list::format_cpu_list;
use crate::linux::cgroup::{self, LeafGroup};
use crate::linux::options::{CallGraph, Options, RecordingTarget};
use crate::linux::recorded_event::RecordedEvent;
use crate::linux::ring_limits::{AttachCost, AttachMethod, Copies, Rights, RingLimits, RingPlan};
use crate::linux::sys::limits::page_size;
use crate::linux::thread_events::WaitLimit;
use crate::linux::{command_group, cpus, limits, proc};

/// The control group that is recorded.
#[derive(Debug)]
pub(super) enum RecordedGroup {
    /// The group of the command, which is removed when this is dropped.
    Leaf(LeafGroup),
    /// A group that already existed.
    Named(PathBuf),
}

impl RecordedGroup {
    /// The command's own group.
    pub(super) fn leaf(self) -> Option<LeafGroup> {
        match self {
            Self::Leaf(leaf) => Some(leaf),
            Self::Named(_) => None,
        }
    }
}

/// The open events of a target, and how the target's samples are selected.
pub(super) struct OpenTarget {
    pub(super) opened: OpenEvents,
    pub(super) filter: ProcessFilter,
    pub(super) group: Option<RecordedGroup>,
    pub(super) coverage: Coverage,
}

/// The parameters of all events, and the limits of the machine.
pub(super) struct TargetOpener {
    pub(super) cpus: Vec<u32>,
    pub(super) rate_hz: u32,
    context_switches: bool,
    starts_paused: bool,
    pub(super) call_graph: CallGraph,
    pub(super) limits: RingLimits,
    /// The additional events.
    pub(super) additional_events: Vec<RecordedEvent>,
}

impl TargetOpener {
    pub(super) fn new(options: &Options, rate_hz: u32) -> Result<Self, OpenError> {
        let cpus = requested_cpus(&options.cpus)?;
        let limits = RingLimits {
            cpus: cpus.len(),
            page: page_size(),
            bytes: (!limits::rings_are_unlimited())
                .then(|| limits::ring_bytes_without_privileges(cpus.len())),
            rate_hz,
            copies: options.copies(),
            reader_at_once: limits::real_time_is_permitted(),
            has_additional_events: !options.events.is_empty(),
        };
        let (context_switches, call_graph) = (options.context_switches, options.call_graph);
        let additional_events = options.events.clone();
        let starts_paused = options.starts_paused;
        Ok(Self { cpus, rate_hz, context_switches, starts_paused, call_graph, limits, additional_events })
    }

    pub(super) fn open(
        &self,
        target: &RecordingTarget,
        notices: &mut Vec<Notice>,
    ) -> Result<OpenTarget, OpenError> {
        match target {
            RecordingTarget::Child(pid) => self.open_child(*pid, notices),
            RecordingTarget::Attach(pids) => self.open_answering(pids, notices),
            RecordingTarget::Thread { pid, tid } => Ok(OpenTarget {
                opened: answering(&[*pid]).and_then(|_| {
                    let _limit = WaitLimit::begin();
                    self.open_events(RecordedScope::Thread(*pid, *tid))
                })?,
                filter: ProcessFilter::All,
                group: None,
                coverage: Coverage::Threads,
            }),
            RecordingTarget::System => Ok(OpenTarget {
                opened: self.open_events(RecordedScope::Everyone)?,
                filter: ProcessFilter::All,
                group: None,
                coverage: Coverage::Cpus,
            }),
            RecordingTarget::Cgroup(path) => self.open_group(path),
        }
    }

    /// Opens the child in a control group of its own if the kernel can filter events by it, so that its short
    /// processes count too. If no group can be made, opens all that runs on the CPUs and keeps the child's
    /// descendants. Without the permission for either, opens the threads individually. It also does so if
    /// every user may see everything: a reader without priority cannot keep up with all events of a busy
    /// machine.
    fn open_child(&self, pid: Pid, notices: &mut Vec<Notice>) -> Result<OpenTarget, OpenError> {
        if self.cpus.first().is_some_and(|cpu| cpus_may_be_watched(*cpu)) {
            let reason = match self.open_leaf(pid) {
                Ok(opened) => return Ok(opened),
                Err(error @ (OpenError::Event { .. } | OpenError::Filter { .. })) => return Err(error),
                // The system's own sentences end with a number.
                Err(OpenError::System { source, .. }) if source.raw_os_error().is_some() => {
                    source.kind().to_string()
                }
                Err(OpenError::System { source, .. }) => source.to_string(),
                Err(error) => error.to_string(),
            };
            if limits::may_see_everything()
                && let Ok(opened) = self.open_events(RecordedScope::Everyone)
            {
                notices.push(Notice::NoGroup { reason });
                let filter = ProcessFilter::Family([pid].into());
                return Ok(OpenTarget { opened, filter, group: None, coverage: Coverage::Cpus });
            }
        }
        let opened = self.open_events(RecordedScope::Child(pid))?;
        Ok(OpenTarget { opened, filter: ProcessFilter::All, group: None, coverage: Coverage::Threads })
    }

    fn open_leaf(&self, pid: Pid) -> Result<OpenTarget, OpenError> {
        let cpu = self.cpus.first().copied().unwrap_or_default();
        let leaf = command_group::of_command(pid.0, cpu);
        let leaf = leaf.map_err(system_error("no control group can be made"))?;
        let opened = self.open_events(RecordedScope::Group(leaf.file().as_fd()))?;
        let filter = ProcessFilter::FromExec(pid);
        Ok(OpenTarget { opened, filter, group: Some(RecordedGroup::Leaf(leaf)), coverage: Coverage::Group })
    }

    /// Opens the events of running processes, but not of those that withhold themselves: also of none that begins to
    /// when it was asked already.
    fn open_answering(&self, pids: &[Pid], notices: &mut Vec<Notice>) -> Result<OpenTarget, OpenError> {
        if let Some(pid) = pids.iter().find(|pid| proc::has_ended(pid.0)) {
            return Err(OpenError::NoSuchProcess { pid: *pid });
        }
        let mut pids = answering(pids)?;
        let _limit = WaitLimit::begin();
        loop {
            match self.open_running(&pids, notices) {
                Err(OpenError::NoAccess { pid }) if pids.len() > 1 && pids.contains(&pid) => {
                    pids.retain(|other| *other != pid);
                }
                opened => return opened,
            }
        }
    }

    fn open_running(&self, pids: &[Pid], notices: &mut Vec<Notice>) -> Result<OpenTarget, OpenError> {
        let family = proc::families(pids);
        let sees_cpus = self.cpus.first().is_some_and(|cpu| cpus_may_be_watched(*cpu));
        let opener = self.opener(RecordedScope::Running(pids))?;
        let threads =
            family.iter().map(|pid| proc::threads(Pid(*pid)).map_or(0, |threads| threads.len())).sum();
        let cost =
            AttachCost { cpus: self.cpus.len(), threads, additional_events: self.additional_events.len() };
        let rights = Rights { descriptors: limits::descriptor_limit(), sees_cpus };
        match cost.attaching(rights) {
            Some(AttachMethod::Threads) => {
                let opened = opener.open_all(&self.limits)?;
                // Probes exist for all processes.
                let has_probes = self.additional_events.iter().any(|recorded| recorded.event.is_probe());
                let family = || ProcessFilter::Family(family.iter().copied().map(Pid).collect());
                let filter = if has_probes { family() } else { ProcessFilter::All };
                Ok(OpenTarget { opened, filter, group: None, coverage: Coverage::Threads })
            }
            Some(AttachMethod::Cpus) => {
                notices.push(Notice::ManyThreads { threads, events: cost.events() });
                let opened = self.open_events(RecordedScope::Everyone)?;
                let filter = ProcessFilter::Family(family.into_iter().map(Pid).collect());
                Ok(OpenTarget { opened, filter, group: None, coverage: Coverage::Cpus })
            }
            None => Err(OpenError::TooFewDescriptors { threads, needed: cost.descriptors() }),
        }
    }

    fn open_group(&self, path: &Path) -> Result<OpenTarget, OpenError> {
        let no_group = |source| OpenError::NoSuchGroup { path: path.to_owned(), source };
        let (folder, file): (PathBuf, File) = cgroup::open(path).map_err(no_group)?;
        let opened = self.open_events(RecordedScope::Group(file.as_fd()))?;
        let group = Some(RecordedGroup::Named(folder));
        Ok(OpenTarget { opened, filter: ProcessFilter::All, group, coverage: Coverage::Group })
    }

    fn open_events(&self, scope: RecordedScope<'_>) -> Result<OpenEvents, OpenError> {
        self.opener(scope)?.open_all(&self.limits)
    }

    fn opener<'a>(&'a self, scope: RecordedScope<'a>) -> Result<EventOpener<'a>, OpenError> {
        let common = CommonAttr {
            features: Features::ALL,
            reach: scope.reach(),
            switches: self.context_switches,
            call_graph: self.call_graph,
            has_additional_events: !self.additional_events.is_empty(),
            starts_paused: self.starts_paused,
        };
        EventOpener::probe(scope, common, &self.cpus, (self.rate_hz, &self.additional_events))
    }

    pub(super) fn notice_rings(&self, plan: RingPlan, notices: &mut Vec<Notice>) {
        let limits = &self.limits;
        let requested = limits.plan();
        if plan.sample_pages < requested.sample_pages {
            notices.push(Notice::SmallerRings {
                requested: requested.sample_pages * limits.page,
                given: plan.sample_pages * limits.page,
            });
        }
        if plan.sideband_pages.is_none() {
            notices.push(Notice::SharedRings);
        }
        if let Copies::Fixed(requested) = limits.copies
            && plan.stack_bytes < requested
        {
            notices.push(Notice::StackLowered { requested, given: plan.stack_bytes });
        }
    }
}

/// The requested CPUs, which must be online, or all online CPUs.
pub(crate) fn requested_cpus(requested: &[u32]) -> Result<Vec<u32>, OpenError> {
    let online = cpus::online().map_err(system_error("the list of CPUs cannot be read"))?;
    if let Some(cpu) = requested.iter().find(|cpu| !online.contains(cpu)) {
        return Err(OpenError::NoSuchCpu { cpu: *cpu, online: format_cpu_list(&online) });
    }
    Ok(if requested.is_empty() { online } else { requested.to_vec() })
}
