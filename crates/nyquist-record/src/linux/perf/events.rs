//! The opened events: switching them on and off, and what they have counted.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};

use nyquist_convert::perf::EventCpus;

use crate::linux::sys::event;
use crate::linux::sys::poll::PollSet;

/// All events of a recording.
#[derive(Debug, Default)]
pub(crate) struct Events {
    fds: Vec<OwnedFd>,
    counters: Vec<Counter>,
    /// Whether the counters are the second of a group.
    grouped: bool,
}

/// An event that counts a thread's CPU time on a CPU, with that of all threads and processes born from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    /// The place of its event.
    place: usize,
    /// The kernel's number of the event.
    pub(crate) id: u64,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
}

impl Events {
    /// No events yet; `grouped` says whether the counters will be the second of a group.
    pub(crate) fn new(grouped: bool) -> Self {
        Self { grouped, ..Self::default() }
    }

    /// Adds an event, and says its place.
    pub(crate) fn add(&mut self, fd: OwnedFd) -> usize {
        self.fds.push(fd);
        self.fds.len() - 1
    }

    /// Adds an event that samples a thread on a CPU, with the clock beside it if it is none itself, and says its
    /// place.
    pub(crate) fn add_sampling(
        &mut self,
        sampling: OwnedFd,
        clock: Option<OwnedFd>,
        tid: u32,
        cpu: u32,
    ) -> io::Result<usize> {
        let id = event::id(clock.as_ref().unwrap_or(&sampling).as_fd())?;
        let sampling = self.add(sampling);
        let place = clock.map_or(sampling, |clock| self.add(clock));
        self.counters.push(Counter { place, id, tid, cpu });
        Ok(sampling)
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

    /// Lets all events count.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.fds.iter().try_for_each(|fd| event::enable(fd.as_fd()))
    }

    /// Lets no event count any longer. An event whose threads have ended counts nothing anyway.
    pub(crate) fn disable(&self) {
        for fd in &self.fds {
            let _ = event::disable(fd.as_fd());
        }
    }

    /// Whether the thread of a counter has ended, and all that were born from it.
    pub(crate) fn has_ended(&self, counter: &Counter) -> bool {
        let Some(fd) = self.raw_fd(counter.place) else { return false };
        let mut poll = PollSet::default();
        let place = poll.add(fd);
        poll.wait(Some(0)).is_ok() && poll.ready(place).hung_up
    }

    /// What a counter has counted.
    pub(crate) fn read(&self, counter: &Counter) -> io::Result<Count> {
        let fd = self.fds.get(counter.place).ok_or(io::ErrorKind::NotFound)?;
        if self.grouped {
            let [_members, _, _, lost, value, ..] = event::read::<7>(fd.as_fd())?;
            return Ok(Count { value, lost });
        }
        let [value, _id, lost] = event::read(fd.as_fd())?;
        Ok(Count { value, lost })
    }

    /// What all counters have counted together.
    pub(crate) fn total(&self) -> io::Result<Count> {
        self.counters.iter().try_fold(Count::default(), |sum, counter| {
            let Count { value, lost } = self.read(counter)?;
            Ok(Count { value: sum.value.saturating_add(value), lost: sum.lost.saturating_add(lost) })
        })
    }
}

/// What a counter has counted, with all that inherited it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Nanoseconds of CPU time.
    pub(crate) value: u64,
    /// Samples that the kernel dropped; 0 where it does not count them.
    pub(crate) lost: u64,
}
