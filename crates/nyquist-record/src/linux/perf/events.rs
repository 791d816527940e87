//! The opened events: switching them on and off, and what they have counted.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};

use crate::linux::sys::event;

/// All events of a recording.
#[derive(Debug, Default)]
pub(crate) struct Events {
    fds: Vec<OwnedFd>,
    /// The places of those that sample, and so count.
    sampling: Vec<usize>,
}

impl Events {
    /// Adds an event, and says its place.
    pub(crate) fn add(&mut self, fd: OwnedFd, samples: bool) -> usize {
        let place = self.fds.len();
        self.fds.push(fd);
        if samples {
            self.sampling.push(place);
        }
        place
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

    /// What the sampling events have counted, with all that inherited them, and how many samples the kernel says
    /// that it dropped, if it says so.
    pub(crate) fn totals(&self) -> io::Result<Totals> {
        let mut totals = Totals::default();
        for fd in self.sampling.iter().filter_map(|place| self.fds.get(*place)) {
            let [value, _id, lost] = event::read(fd.as_fd())?;
            totals.value += value;
            totals.lost += lost;
        }
        Ok(totals)
    }
}

/// Sums over the sampling events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) value: u64,
    pub(crate) lost: u64,
}
