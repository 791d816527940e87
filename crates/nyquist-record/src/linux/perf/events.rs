//! The opened events: enabling and disabling them, and reading their counts.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};

use nyquist_convert::perf::{EventCpus, SampleFields};

use crate::linux::recorded_event::{Pacing, RecordedEvent};
use crate::linux::sys::event;
use crate::linux::sys::poll::PollSet;

/// All events of a recording.
#[derive(Debug, Default)]
pub(crate) struct OpenedEvents {
    fds: Vec<OwnedFd>,
    /// The role of each event.
    roles: Vec<Role>,
    counters: Vec<CpuTimeCounter>,
    additional: Vec<OpenAdditionalEvent>,
}

/// The indices of a thread's events on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadEvents {
    pub(crate) sampling: usize,
    pub(crate) totals: usize,
}

/// The role of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It samples.
    Sampling,
    /// It counts, and reports the CPU time of threads that end.
    Totals,
    /// It keeps a thread's descendants from being taken for its copies.
    Separator,
    /// It reports mappings, names and tasks.
    Sideband,
    /// It replaces `Sideband` while the sideband has many records, and reports the same.
    LazySideband,
    /// It samples in addition to the sampling event. The number is the index of the event in the list of requested
    /// events.
    Additional(usize),
}

/// An event that counts the CPU time of a thread on a CPU, including all its descendants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTimeCounter {
    /// The index of its event.
    place: usize,
    /// The index of the event that samples the same thread on the same CPU.
    sampling: usize,
    /// The kernel's id of the event.
    pub(crate) id: u64,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
}

/// An additional event, of one thread on one CPU, or of a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAdditionalEvent {
    place: usize,
    /// Its index in the list of requested events.
    pub(crate) event: usize,
    /// The kernel's id of the event.
    pub(crate) id: u64,
    /// The thread that it was opened for; `None` if it is for all threads.
    tid: Option<u32>,
    /// Whether its losses are reported.
    is_requested: bool,
    /// How many samples to record per second, if the reader controls the rate.
    requested_hz: Option<u64>,
    /// Whether its samples do not account for what it counted after the last of them.
    is_counted_at_end: bool,
}

impl OpenedEvents {
    /// Adds an event and returns its index.
    pub(crate) fn add(&mut self, fd: OwnedFd, role: Role) -> usize {
        self.fds.push(fd);
        self.roles.push(role);
        self.fds.len() - 1
    }

    /// Adds an additional event, with the thread that it was opened for, if any. `counts` is whether
    /// samples can contain its count.
    pub(crate) fn add_additional(
        &mut self,
        fd: OwnedFd,
        (event, recorded): (usize, &RecordedEvent),
        (tid, counts): (Option<u32>, bool),
    ) -> io::Result<usize> {
        let id = event::id(fd.as_fd())?;
        let place = self.add(fd, Role::Additional(event));
        let requested_hz = match recorded.pacing(counts) {
            Pacing::ByReader(hz) => Some(hz),
            Pacing::Fixed(_) | Pacing::ByKernel(_) => None,
        };
        let is_requested = !recorded.is_optional();
        let is_counted_at_end = recorded.sample_fields(counts) == SampleFields::NextPeriod;
        self.additional.push(OpenAdditionalEvent {
            place,
            event,
            id,
            tid,
            is_requested,
            requested_hz,
            is_counted_at_end,
        });
        Ok(place)
    }

    /// The additional events.
    pub(crate) fn additional(&self) -> &[OpenAdditionalEvent] {
        &self.additional
    }

    /// The indices of the additional events whose periods follow their rates, with the requested samples
    /// per second.
    pub(crate) fn paced(&self) -> impl Iterator<Item = (usize, u64)> {
        self.additional.iter().filter_map(|event| Some((event.place, event.requested_hz?)))
    }

    /// The counts of the additional events whose samples do not add up to them, by the events' indices in the list of
    /// requested events. Descendants' counts are in that of the event that they inherited.
    pub(crate) fn counts_at_end(&self) -> BTreeMap<usize, u64> {
        let mut counts = BTreeMap::<usize, u64>::new();
        for event in self.additional.iter().filter(|event| event.is_counted_at_end) {
            let count = counts.entry(event.event).or_default();
            *count = count.saturating_add(self.count(event.place).unwrap_or_default());
        }
        counts
    }

    /// The count of an event.
    pub(crate) fn count(&self, place: usize) -> io::Result<u64> {
        Ok(self.read_first(place)?[0])
    }

    /// How many requested samples the kernel dropped; 0 if the kernel does not count them (before Linux 6.0).
    pub(crate) fn lost_of_additional_events(&self) -> u64 {
        let lost = |event: &OpenAdditionalEvent| self.read_first(event.place).unwrap_or_default()[1];
        self.additional.iter().filter(|event| event.is_requested).map(lost).fold(0, u64::saturating_add)
    }

    /// Adds the events of a thread on a CPU: the sampling event, and the one that counts.
    pub(crate) fn add_thread(
        &mut self,
        sampling: OwnedFd,
        totals: OwnedFd,
        (tid, cpu): (u32, u32),
    ) -> io::Result<ThreadEvents> {
        let id = event::id(totals.as_fd())?;
        let sampling = self.add(sampling, Role::Sampling);
        let place = self.add(totals, Role::Totals);
        self.counters.push(CpuTimeCounter { place, sampling, id, tid, cpu });
        Ok(ThreadEvents { sampling, totals: place })
    }

    /// The events with this role.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &OwnedFd> {
        let fds = self.fds.iter().zip(&self.roles).filter(move |(_, of)| **of == role);
        fds.map(|(fd, _)| fd)
    }

    /// The kernel's ids of the events with this role.
    pub(crate) fn ids(&self, role: Role) -> io::Result<Vec<u64>> {
        self.of_role(role).map(|fd| event::id(fd.as_fd())).collect()
    }

    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.fds.len()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&OwnedFd> {
        self.fds.get(place)
    }

    pub(crate) fn raw_fd(&self, place: usize) -> Option<RawFd> {
        self.fds.get(place).map(AsRawFd::as_raw_fd)
    }

    /// The events that count CPU time.
    pub(crate) fn counters(&self) -> &[CpuTimeCounter] {
        &self.counters
    }

    /// The CPUs of the counters.
    pub(crate) fn cpus(&self) -> EventCpus {
        self.counters.iter().map(|counter| (counter.id, counter.cpu)).collect()
    }

    /// Enables all events, except those that replace others for a while and those that only exist.
    pub(crate) fn enable(&self) -> io::Result<()> {
        let now = self
            .fds
            .iter()
            .zip(&self.roles)
            .filter(|(_, role)| !matches!(role, Role::LazySideband | Role::Separator));
        now.map(|(fd, _)| fd).try_for_each(|fd| event::enable(fd.as_fd()))
    }

    /// Enables the event at index `on`, then disables the one at index `off`.
    pub(crate) fn switch(&self, on: usize, off: usize) {
        if let Some((on, off)) = self.get(on).zip(self.get(off)) {
            // If the first cannot be enabled, the second stays enabled.
            let _ = event::enable(on.as_fd()).and_then(|()| event::disable(off.as_fd()));
        }
    }

    /// Enables or disables the events that sample and count. Those that report mappings, names and tasks stay as they
    /// are. The copies that threads have inherited follow.
    pub(crate) fn set_sampling(&self, is_on: bool) {
        let samples = |role: &Role| matches!(role, Role::Sampling | Role::Totals | Role::Additional(_));
        for (fd, _) in self.fds.iter().zip(&self.roles).filter(|(_, role)| samples(role)) {
            // An event whose threads have ended stays as it is.
            let _ = if is_on { event::enable(fd.as_fd()) } else { event::disable(fd.as_fd()) };
        }
    }

    /// Enables the events that report mappings, names and tasks.
    pub(crate) fn enable_sidebands(&self) -> io::Result<()> {
        let sidebands = self.fds.iter().zip(&self.roles).filter(|(_, role)| **role == Role::Sideband);
        sidebands.map(|(fd, _)| fd).try_for_each(|fd| event::enable(fd.as_fd()))
    }

    /// Disables all events. An event whose threads have ended counts nothing anyway.
    pub(crate) fn disable(&self) {
        for fd in &self.fds {
            let _ = event::disable(fd.as_fd());
        }
    }

    /// Whether all threads whose events were opened have ended, and all their descendants.
    pub(crate) fn all_have_ended(&self) -> bool {
        self.counters.iter().all(|counter| self.has_ended(counter))
    }

    /// The ids of the sampling events, with the threads that they were opened for.
    pub(crate) fn sampled_threads(&self) -> io::Result<Vec<(u64, u32)>> {
        let places = self.counters.iter().map(|counter| (counter.sampling, counter.tid));
        let sampled = |(place, tid): (usize, u32)| {
            let fd = self.fds.get(place).ok_or(io::ErrorKind::NotFound)?;
            Ok((event::id(fd.as_fd())?, tid))
        };
        let additional = self.additional.iter().filter_map(|event| Some(Ok((event.id, event.tid?))));
        places.map(sampled).chain(additional).collect()
    }

    /// The events that sample now.
    pub(crate) fn sampling(&self) -> impl Iterator<Item = &OwnedFd> {
        self.counters.iter().filter_map(|counter| self.fds.get(counter.sampling))
    }

    /// Whether the thread of a counter and all its descendants have ended.
    pub(crate) fn has_ended(&self, counter: &CpuTimeCounter) -> bool {
        let Some(fd) = self.raw_fd(counter.place) else { return false };
        let mut poll = PollSet::default();
        let place = poll.add(fd);
        poll.wait(Some(0)).is_ok() && poll.ready(place).hung_up
    }

    /// The CPU time that a counter has counted, with all events that inherited it, in nanoseconds.
    pub(crate) fn read(&self, counter: &CpuTimeCounter) -> io::Result<u64> {
        Ok(self.read_first(counter.place)?[0])
    }

    /// Whether the kernel has dropped records with counts of threads that inherited a counter (from Linux 6.0).
    pub(crate) fn has_lost_counts(&self, counter: &CpuTimeCounter) -> bool {
        self.read_first(counter.place).is_ok_and(|[_, lost]| lost > 0)
    }

    /// The sum of all counters.
    pub(crate) fn total(&self) -> io::Result<u64> {
        let mut counters = self.counters.iter();
        counters.try_fold(0, |sum: u64, counter| Ok(sum.saturating_add(self.read(counter)?)))
    }

    /// How many samples the kernel dropped on each CPU; empty if the kernel does not count them (before Linux
    /// 6.0).
    pub(crate) fn lost_by_cpu(&self) -> BTreeMap<u32, u64> {
        let mut by_cpu = BTreeMap::new();
        for counter in &self.counters {
            // An event that can no longer be read counts as having lost nothing.
            let [_, lost] = self.read_first(counter.sampling).unwrap_or_default();
            let sum: &mut u64 = by_cpu.entry(counter.cpu).or_default();
            *sum = sum.saturating_add(lost);
        }
        by_cpu
    }

    /// The value of an event, and the number of lost records.
    fn read_first(&self, place: usize) -> io::Result<[u64; 2]> {
        let fd = self.fds.get(place).ok_or(io::ErrorKind::NotFound)?;
        let [value, _id, lost] = event::read(fd.as_fd())?;
        Ok([value, lost])
    }
}
