//! The opened events: switching them on and off, and what they have counted.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nyquist_convert::perf::EventCpus;

use crate::linux::recorded_event::{Pacing, RecordedEvent};
use crate::linux::sys::event;
use crate::linux::sys::poll::PollSet;

/// All events of a recording.
#[derive(Debug, Default)]
pub(crate) struct Events {
    fds: Vec<OwnedFd>,
    /// What each of them is for.
    roles: Vec<Role>,
    counters: Vec<Counter>,
    beside: Vec<Beside>,
    /// Whether events are read as groups, of one or more.
    grouped: bool,
    /// Whether those that copy more of each stack sample.
    deep: AtomicBool,
}

/// An event that samples, with the clock beside it if it is none itself.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) event: OwnedFd,
    pub(crate) clock: Option<OwnedFd>,
}

/// The places of a thread's events on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadEvents {
    pub(crate) sampling: usize,
    pub(crate) totals: usize,
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It samples.
    Sampling,
    /// It samples in the place of the former, with more of each stack, from when it is switched on.
    DeepSampling,
    /// It counts beside the one that samples.
    Clock,
    /// It tells what threads have used that end.
    Totals,
    /// It tells of mappings, names and tasks.
    Sideband,
    /// It tells of the same in the former's place while much of it comes.
    LazySideband,
    /// It samples beside the clock: the one of that place in the list of what was asked for.
    Beside(usize),
}

/// An event that counts a thread's CPU time on a CPU, with that of all threads and processes born from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    /// The place of its event.
    place: usize,
    /// The place of the event that samples the same thread on the same CPU.
    sampling: usize,
    /// The place of the one that takes over from it, where there is one.
    deep: Option<usize>,
    /// The kernel's number of the event.
    pub(crate) id: u64,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
}

/// An event beside the clock, of one thread on one CPU, or of a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    place: usize,
    /// Its place in the list of what was asked for.
    pub(crate) event: usize,
    /// The kernel's number of the event.
    pub(crate) id: u64,
    /// The thread that it was opened for; none where it is for all.
    tid: Option<u32>,
    /// Whether its losses are told.
    is_asked_for: bool,
    /// How many are to be recorded a second, if the reader sees to that.
    wanted_hz: Option<u64>,
}

impl Events {
    /// No events yet; `grouped` says whether they are read as groups.
    pub(crate) fn new(grouped: bool) -> Self {
        Self { grouped, ..Self::default() }
    }

    /// Adds an event, and says its place.
    pub(crate) fn add(&mut self, fd: OwnedFd, role: Role) -> usize {
        self.fds.push(fd);
        self.roles.push(role);
        self.fds.len() - 1
    }

    /// Adds an event beside the clock, and the thread that it was opened for, if it was for one. `counts` says whether samples can have
    /// its count.
    pub(crate) fn add_beside(
        &mut self,
        fd: OwnedFd,
        (event, recorded): (usize, &RecordedEvent),
        (tid, counts): (Option<u32>, bool),
    ) -> io::Result<usize> {
        let id = event::id(fd.as_fd())?;
        let place = self.add(fd, Role::Beside(event));
        let wanted_hz = match recorded.pacing(counts) {
            Pacing::ByReader(hz) => Some(hz),
            Pacing::Fixed(_) | Pacing::ByKernel(_) => None,
        };
        let is_asked_for = !recorded.may_be_left_out();
        self.beside.push(Beside { place, event, id, tid, is_asked_for, wanted_hz });
        Ok(place)
    }

    /// The events beside the clock.
    pub(crate) fn beside(&self) -> &[Beside] {
        &self.beside
    }

    /// The places of those beside the clock whose periods change with their rates, and how many of each are to be recorded a second.
    pub(crate) fn paced(&self) -> impl Iterator<Item = (usize, u64)> {
        self.beside.iter().filter_map(|beside| Some((beside.place, beside.wanted_hz?)))
    }

    /// What an event has counted.
    pub(crate) fn count(&self, place: usize) -> io::Result<u64> {
        Ok(self.read_first(place)?[0])
    }

    /// How many samples of those that were asked for the kernel dropped; none where it does not count them (before Linux 6.0).
    pub(crate) fn lost_beside(&self) -> u64 {
        let lost = |beside: &Beside| self.read_first(beside.place).unwrap_or_default()[1];
        self.beside.iter().filter(|beside| beside.is_asked_for).map(lost).fold(0, u64::saturating_add)
    }

    /// Adds the events of a thread on a CPU: the one that samples, the one that takes over from it, where there is one,
    /// and the one that counts.
    pub(crate) fn add_thread(
        &mut self,
        sampling: Sampler,
        deep: Option<Sampler>,
        totals: OwnedFd,
        (tid, cpu): (u32, u32),
    ) -> io::Result<ThreadEvents> {
        let id = event::id(totals.as_fd())?;
        let sampling = self.add_sampler(sampling, Role::Sampling);
        let deep = deep.map(|deep| self.add_sampler(deep, Role::DeepSampling));
        let place = self.add(totals, Role::Totals);
        self.counters.push(Counter { place, sampling, deep, id, tid, cpu });
        Ok(ThreadEvents { sampling, totals: place })
    }

    fn add_sampler(&mut self, sampler: Sampler, role: Role) -> usize {
        let place = self.add(sampler.event, role);
        if let Some(clock) = sampler.clock {
            self.add(clock, Role::Clock);
        }
        place
    }

    /// The kernel's numbers of the events that are for this.
    pub(crate) fn ids(&self, role: Role) -> io::Result<Vec<u64>> {
        let fds = self.fds.iter().zip(&self.roles).filter(|(_, of)| **of == role);
        fds.map(|(fd, _)| event::id(fd.as_fd())).collect()
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
    pub(crate) fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The CPUs of the counters.
    pub(crate) fn cpus(&self) -> EventCpus {
        self.counters.iter().map(|counter| (counter.id, counter.cpu)).collect()
    }

    /// Lets all events count, but for those that take over later.
    pub(crate) fn enable(&self) -> io::Result<()> {
        let is_later = |role| matches!(role, Role::DeepSampling | Role::LazySideband);
        let now = self.fds.iter().zip(&self.roles).filter(|(_, role)| !is_later(**role));
        now.map(|(fd, _)| fd).try_for_each(|fd| event::enable(fd.as_fd()))
    }

    /// Whether there are events that copy more of each stack.
    pub(crate) fn can_deepen(&self) -> bool {
        self.counters.iter().any(|counter| counter.deep.is_some())
    }

    /// Whether these have taken over.
    pub(crate) fn are_deep(&self) -> bool {
        self.deep.load(Ordering::Acquire)
    }

    /// Lets the events that copy more of each stack take over: on each CPU, for each thread, the one is switched off
    /// before the other is switched on, so that no moment is sampled twice. What the kernel has made of them for threads
    /// and processes that were born since is switched with them. To be called again a little later, for who was being
    /// born meanwhile: a second time changes nothing else.
    pub(crate) fn deepen(&self) {
        for counter in &self.counters {
            let deep = counter.deep.and_then(|deep| self.fds.get(deep));
            if let Some((deep, shallow)) = deep.zip(self.fds.get(counter.sampling)) {
                // An event whose threads have ended cannot be switched, and need not be.
                let _ = event::disable(shallow.as_fd());
                let _ = event::enable(deep.as_fd());
            }
        }
        self.deep.store(true, Ordering::Release);
    }

    /// Switches an event on, then another one off; by their places.
    pub(crate) fn switch(&self, on: usize, off: usize) {
        if let Some((on, off)) = self.get(on).zip(self.get(off)) {
            // Where the first cannot be switched on, the second stays.
            let _ = event::enable(on.as_fd()).and_then(|()| event::disable(off.as_fd()));
        }
    }

    /// Lets no event count any longer. An event whose threads have ended counts nothing anyway.
    pub(crate) fn disable(&self) {
        for fd in &self.fds {
            let _ = event::disable(fd.as_fd());
        }
    }

    /// Whether all threads have ended whose events were opened, and all that were born from them.
    pub(crate) fn all_have_ended(&self) -> bool {
        self.counters.iter().all(|counter| self.has_ended(counter))
    }

    /// The events that sample: their numbers, and the threads that they were opened for.
    pub(crate) fn sampled_threads(&self) -> io::Result<Vec<(u64, u32)>> {
        let places = self.counters.iter().flat_map(|counter| {
            [Some(counter.sampling), counter.deep].into_iter().flatten().map(|place| (place, counter.tid))
        });
        let sampled = |(place, tid): (usize, u32)| {
            let fd = self.fds.get(place).ok_or(io::ErrorKind::NotFound)?;
            Ok((event::id(fd.as_fd())?, tid))
        };
        let beside = self.beside.iter().filter_map(|beside| Some(Ok((beside.id, beside.tid?))));
        places.map(sampled).chain(beside).collect()
    }

    /// The events that sample now.
    pub(crate) fn sampling(&self) -> impl Iterator<Item = &OwnedFd> {
        let is_deep = self.are_deep();
        let place = move |counter: &Counter| counter.deep.filter(|_| is_deep).unwrap_or(counter.sampling);
        self.counters.iter().filter_map(move |counter| self.fds.get(place(counter)))
    }

    /// Whether the thread of a counter has ended, and all that were born from it.
    pub(crate) fn has_ended(&self, counter: &Counter) -> bool {
        let Some(fd) = self.raw_fd(counter.place) else { return false };
        let mut poll = PollSet::default();
        let place = poll.add(fd);
        poll.wait(Some(0)).is_ok() && poll.ready(place).hung_up
    }

    /// What a counter has counted, with all that inherited it, in nanoseconds of CPU time.
    pub(crate) fn read(&self, counter: &Counter) -> io::Result<u64> {
        Ok(self.read_first(counter.place)?[0])
    }

    /// What all counters have counted together.
    pub(crate) fn total(&self) -> io::Result<u64> {
        let mut counters = self.counters.iter();
        counters.try_fold(0, |sum: u64, counter| Ok(sum.saturating_add(self.read(counter)?)))
    }

    /// How many samples the kernel dropped on each CPU; none where it does not count them (before Linux 6.0).
    pub(crate) fn lost_by_cpu(&self) -> BTreeMap<u32, u64> {
        let mut by_cpu = BTreeMap::new();
        for counter in &self.counters {
            for sampler in [Some(counter.sampling), counter.deep].into_iter().flatten() {
                // What cannot be read any more is not known to have lost anything.
                let [_, lost] = self.read_first(sampler).unwrap_or_default();
                let sum: &mut u64 = by_cpu.entry(counter.cpu).or_default();
                *sum = sum.saturating_add(lost);
            }
        }
        by_cpu
    }

    /// The value of an event, of a group's first one, and how many records were lost.
    fn read_first(&self, place: usize) -> io::Result<[u64; 2]> {
        let fd = self.fds.get(place).ok_or(io::ErrorKind::NotFound)?;
        if self.grouped {
            let [_members, value, _id, lost, ..] = event::read::<7>(fd.as_fd())?;
            return Ok([value, lost]);
        }
        let [value, _id, lost] = event::read(fd.as_fd())?;
        Ok([value, lost])
    }
}
