//! The counters of events: opened with what the kernel grants, and read.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use nyquist_convert::event::Pid;

use super::attr::{EventRestrictions, Reach, counting};
use super::error::CountError;
use crate::linux::cgroup::LeafGroup;
use crate::linux::event_names::{RequestedEvent, Selector};
use crate::linux::limits::raise_descriptor_limit;
use crate::linux::sys::event::{self, Subject};
use crate::linux::thread_events::{self, WaitLimit, withholding};
use crate::linux::{command_group, cpus, proc, target_access};

/// The threads that are counted.
#[derive(Clone, Copy, Debug)]
pub enum CountedScope<'a> {
    /// A process from its next exec on, with all its descendants.
    Child(Pid),
    /// All threads of running processes, with all their descendants.
    Running(&'a [Pid]),
    /// All threads of running processes, each by itself, without their descendants.
    EachThread(&'a [Pid]),
    /// A single thread, without its descendants.
    Thread {
        /// The thread.
        tid: u32,
        /// Whether counting begins when it calls exec.
        from_exec: bool,
    },
    /// All threads.
    Everyone,
}

impl CountedScope<'_> {
    fn reach(self) -> Reach {
        Reach {
            inherits: matches!(self, Self::Child(_) | Self::Running(_)),
            from_exec: matches!(self, Self::Child(_) | Self::Thread { from_exec: true, .. }),
        }
    }

    /// The threads that are counted; empty if all are.
    fn threads(self) -> Result<Vec<u32>, CountError> {
        let pids = match self {
            Self::Child(pid) => return Ok(vec![pid.0]),
            Self::Thread { tid, .. } => return Ok(vec![tid]),
            Self::Everyone => return Ok(Vec::new()),
            Self::Running(pids) | Self::EachThread(pids) => pids,
        };
        let mut threads = Vec::new();
        for pid in pids {
            if target_access::withholds_itself(pid.0) {
                return Err(CountError::NoAccess(*pid));
            }
            let found = proc::threads(*pid).map_err(|_| CountError::NoProcess(*pid))?;
            threads.extend(found);
        }
        Ok(threads)
    }
}

/// Why an event has no count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingCount {
    /// The machine does not have it.
    NotSupported,
    /// This process may not count it.
    NotPermitted,
    /// It counts for the whole machine only, and not for single threads.
    WholeMachineOnly,
    /// It never got a free hardware counter.
    NotCounted,
    /// It requires a control group for the command, and none can be made.
    NoGroup,
}

/// How often an event occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventTotal {
    /// The count in the event's unit. It is extrapolated if the event was counted for only a part of the
    /// time.
    pub value: f64,
    /// The time for which it was enabled, in ns, summed over threads or CPUs.
    pub enabled_ns: u64,
    /// The time for which it was counted, in ns. It is less than `enabled_ns` if events were multiplexed.
    pub running_ns: u64,
}

impl EventTotal {
    /// The share of the enabled time in which it was counted, from 0 to 1.
    pub fn share(self) -> f64 {
        if self.enabled_ns == 0 { 1.0 } else { self.running_ns as f64 / self.enabled_ns as f64 }
    }

    fn add(&mut self, [value, enabled, running]: [u64; 3], scale: f64) {
        if running > 0 {
            self.value += value as f64 * scale * (enabled as f64 / running as f64);
        }
        self.enabled_ns = self.enabled_ns.saturating_add(enabled);
        self.running_ns = self.running_ns.saturating_add(running);
    }
}

/// The reading of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventReading {
    /// The index of the event among the requested ones.
    pub event: usize,
    /// The thread, if each is counted by itself.
    pub thread: Option<u32>,
    /// The count since the beginning.
    pub count: Result<EventTotal, MissingCount>,
    /// Whether kernel code is excluded, because this process may not count it.
    pub user_only: bool,
}

/// The counters of events.
#[derive(Debug)]
pub struct EventCounters {
    rows: Vec<CounterRow>,
    /// The command's control group, if an event needs one. It is removed after the counters are closed.
    _group: Option<LeafGroup>,
}

#[derive(Debug)]
struct CounterRow {
    event: usize,
    thread: Option<u32>,
    scale: f64,
    opened: Result<Vec<OwnedFd>, MissingCount>,
    less: EventRestrictions,
}

impl EventCounters {
    /// Opens counters for each event. An event that the machine does not have, or that this process may not
    /// count, has a row without a count. If only the kernel's part may not be counted, that part is excluded.
    pub fn open(events: &[RequestedEvent], scope: CountedScope<'_>) -> Result<Self, CountError> {
        raise_descriptor_limit();
        let threads = scope.threads()?;
        let online = if matches!(scope, CountedScope::Everyone) {
            cpus::online().map_err(|error| CountError::NoList("the CPUs", error))?
        } else {
            Vec::new()
        };
        let group = CommandGroup::of(events, scope)?;
        let _limit = (!threads.is_empty()).then(WaitLimit::begin);
        let opening = OpenParameters { scope, events: events.len(), online: &online, group: group.as_ref() };
        let mut rows = Vec::new();
        if matches!(scope, CountedScope::EachThread(_) | CountedScope::Thread { .. }) {
            for thread in threads {
                for (index, event) in events.iter().enumerate() {
                    rows.push(opening.row(index, event, &[thread], Some(thread))?);
                }
            }
        } else {
            for (index, event) in events.iter().enumerate() {
                rows.push(opening.row(index, event, &threads, None)?);
            }
        }
        Ok(Self { rows, _group: group.and_then(|group| group.leaf) })
    }

    /// Enables all counters, except those that start by themselves.
    pub fn enable(&self) {
        self.each(|counter| event::enable(counter.as_fd()));
    }

    /// Disables all counters.
    pub fn disable(&self) {
        self.each(|counter| event::disable(counter.as_fd()));
    }

    fn each(&self, call: impl Fn(&OwnedFd) -> io::Result<()>) {
        for counter in self.rows.iter().filter_map(|row| row.opened.as_ref().ok()).flatten() {
            // A thread that has ended counts no more, and its counter can still be read.
            let _ = call(counter);
        }
    }

    /// The current readings of all counters.
    pub fn read(&self) -> Vec<EventReading> {
        self.rows.iter().map(CounterRow::read).collect()
    }
}

impl CounterRow {
    fn read(&self) -> EventReading {
        let count = self.opened.as_ref().map_err(|missing| *missing).map(|counters| {
            let mut sum = EventTotal::default();
            for words in counters.iter().filter_map(|counter| event::read::<3>(counter.as_fd()).ok()) {
                sum.add(words, self.scale);
            }
            sum
        });
        let count = count.and_then(|count| match count {
            EventTotal { enabled_ns: 1.., running_ns: 0, .. } => Err(MissingCount::NotCounted),
            count => Ok(count),
        });
        EventReading { event: self.event, thread: self.thread, count, user_only: self.less.user_only }
    }
}

/// The control group of a command whose calls are counted. A probe's counter cannot be inherited.
/// The kernel would search for the path of its file in the memory of the forking process, where it is not, and
/// would refuse the fork (Linux 6.18, `perf_uprobe_init`).
struct CommandGroup {
    /// `None` if it could not be made.
    leaf: Option<LeafGroup>,
    cpus: Vec<u32>,
}

impl CommandGroup {
    /// Makes it and moves the command into it, if an event needs it.
    fn of(events: &[RequestedEvent], scope: CountedScope<'_>) -> Result<Option<Self>, CountError> {
        let CountedScope::Child(pid) = scope else { return Ok(None) };
        if !events.iter().any(RequestedEvent::is_probe) {
            return Ok(None);
        }
        let cpus = cpus::online().map_err(|error| CountError::NoList("the CPUs", error))?;
        let leaf = command_group::of_command(pid.0, cpus.first().copied().unwrap_or_default()).ok();
        Ok(Some(Self { leaf, cpus }))
    }
}

/// The parameters that all counters share while they are opened.
struct OpenParameters<'a> {
    scope: CountedScope<'a>,
    events: usize,
    online: &'a [u32],
    group: Option<&'a CommandGroup>,
}

impl OpenParameters<'_> {
    /// Opens one event for some threads, or for all CPUs.
    fn row(
        &self,
        index: usize,
        event: &RequestedEvent,
        threads: &[u32],
        thread: Option<u32>,
    ) -> Result<CounterRow, CountError> {
        let mut less = EventRestrictions::default();
        let group = self.group.filter(|_| event.is_probe());
        let opened = loop {
            if group.is_some_and(|group| group.leaf.is_none()) {
                break Err(MissingCount::NoGroup);
            }
            let opened = match group.and_then(|group| Some((group, group.leaf.as_ref()?))) {
                Some((group, leaf)) => Self::open_in_group(event, &group.cpus, leaf, less),
                None => self.open(event, threads, less),
            };
            match opened {
                Ok(counters) => break Ok(counters),
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(0);
                    match less.after(errno, event) {
                        Some(further) => less = further,
                        None => break Err(self.missing(event, threads, less, error)?),
                    }
                }
            }
        };
        less.user_only &= opened.is_ok();
        Ok(CounterRow { event: index, thread, scale: event.scale, opened, less })
    }

    /// Opens a probe's counters for a control group and enables them. The command in it still waits to start.
    fn open_in_group(
        event: &RequestedEvent,
        cpus: &[u32],
        leaf: &LeafGroup,
        less: EventRestrictions,
    ) -> io::Result<Vec<OwnedFd>> {
        let mut counters = Vec::new();
        let reach = Reach { inherits: false, from_exec: false };
        for selector in &event.selectors {
            let attr = counting(event, selector, reach, less);
            let path = selector.path_for_kernel()?;
            for cpu in cpus {
                let subject = Subject::Group(leaf.file().as_fd());
                let counter = thread_events::open_counter(attr, subject, Some(*cpu), path.as_deref())?;
                event::enable(counter.as_fd())?;
                counters.push(counter);
            }
        }
        Ok(counters)
    }

    fn open(
        &self,
        event: &RequestedEvent,
        threads: &[u32],
        less: EventRestrictions,
    ) -> io::Result<Vec<OwnedFd>> {
        let mut counters = Vec::new();
        let reach = self.scope.reach();
        let reach = Reach { inherits: reach.inherits && !event.is_probe(), ..reach };
        for selector in &event.selectors {
            let attr = counting(event, selector, reach, less);
            let path = selector.path_for_kernel()?;
            if matches!(self.scope, CountedScope::Everyone) {
                for cpu in self.cpus_of(selector) {
                    counters.push(thread_events::open_counter(
                        attr,
                        Subject::Everyone,
                        Some(cpu),
                        path.as_deref(),
                    )?);
                }
                continue;
            }
            for thread in threads {
                match thread_events::open_counter(attr, Subject::Thread(*thread), None, path.as_deref()) {
                    // Other threads of the process live on.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && threads.len() > 1 => {}
                    opened => counters.push(opened?),
                }
            }
        }
        Ok(counters)
    }

    /// The CPUs on which an event is counted for the whole machine.
    fn cpus_of(&self, selector: &Selector) -> Vec<u32> {
        match &selector.cpus {
            Some(own) => self.online.iter().copied().filter(|cpu| own.contains(cpu)).collect(),
            None => self.online.to_vec(),
        }
    }

    /// Converts a final refusal by the kernel.
    fn missing(
        &self,
        event: &RequestedEvent,
        threads: &[u32],
        less: EventRestrictions,
        error: io::Error,
    ) -> Result<MissingCount, CountError> {
        if let Some(pid) = withholding(&error) {
            return Err(CountError::NoAccess(pid));
        }
        let places = threads.len().max(self.online.len());
        let for_threads = !matches!(self.scope, CountedScope::Everyone);
        match error.raw_os_error().unwrap_or(0) {
            libc::ENOSYS | libc::EACCES | libc::EPERM => Ok(MissingCount::NotPermitted),
            libc::EINVAL if for_threads && event.selectors.iter().any(|selector| selector.cpus.is_some()) => {
                Ok(MissingCount::WholeMachineOnly)
            }
            // The event cannot exclude the kernel, which this process may not count.
            libc::EINVAL if less.user_only => Ok(MissingCount::NotPermitted),
            libc::EINVAL | libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP => {
                Ok(MissingCount::NotSupported)
            }
            libc::ESRCH => Err(CountError::NoProcess(Pid(threads.first().copied().unwrap_or(0)))),
            libc::EMFILE | libc::ENFILE => Err(CountError::TooManyFiles(self.events, places)),
            _ => Err(CountError::Open { event: event.name.clone(), source: error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::event_names::{EventSources, parse};

    #[test]
    fn a_part_of_the_time_is_scaled_to_the_whole() {
        let mut count = EventTotal::default();
        count.add([100, 1000, 250], 1.0);
        count.add([10, 1000, 1000], 1.0);
        count.add([0, 1000, 0], 1.0);
        assert_eq!((count.value, count.enabled_ns, count.running_ns), (410.0, 3000, 1250));
        assert!((count.share() - 0.4167).abs() < 1e-3);
        assert!((EventTotal::default().share() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn refused_features_are_left_out_step_by_step() {
        let events =
            parse("cycles,cycles:u", &EventSources::in_folders("/proc/nonexistent".into(), None)).unwrap();
        let user = EventRestrictions { user_only: true, ..EventRestrictions::default() };
        assert_eq!(EventRestrictions::default().after(libc::EACCES, &events[0]), Some(user));
        assert_eq!(user.after(libc::EACCES, &events[0]), None);
        assert_eq!(EventRestrictions::default().after(libc::EACCES, &events[1]), None);
        assert!(
            EventRestrictions::default().after(libc::EINVAL, &events[1]).is_some_and(|less| less.no_guests)
        );
        assert_eq!(EventRestrictions::default().after(libc::ENOENT, &events[0]), None);
    }

    #[test]
    fn own_page_faults_are_counted_where_allowed() {
        let events = parse("page-faults:u", &EventSources::of_machine()).unwrap();
        let pids = [Pid(std::process::id())];
        let counters = EventCounters::open(&events, CountedScope::Running(&pids)).unwrap();
        if counters.read()[0].count.is_err() {
            return;
        }
        counters.enable();
        let memory = std::hint::black_box(vec![1_u8; 64 << 20]);
        counters.disable();
        let count = counters.read()[0].count.unwrap();
        assert!(count.value > 10.0, "{count:?} for {} bytes", memory.len());
    }
}
