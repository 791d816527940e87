//! CPU quotas: when the control groups of the recorded processes had used up theirs, so that the kernel held their
//! threads up.
//!
//! The kernel counts this by group and CPU, not by thread. A thread that is held up looks like one that others
//! have taken the CPU from. So intervals in which a group's count grew are marked.

mod limited_group;

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nyquist_convert::event::{Event, EventKind, Pid, Timestamp, quota_marker};

use crate::linux::Companion;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::poll::{PollSet, event_counter, signal};
use limited_group::{LimitedGroup, limited_groups};

/// The time between two readings, in milliseconds: half of the kernel's usual period.
const PAUSE_MS: u32 = 50;

/// Watches the groups with CPU quotas of the recorded processes.
#[derive(Debug)]
pub struct QuotaWatch {
    shared: Arc<Mutex<Vec<Event>>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl QuotaWatch {
    /// Watches the groups that these processes are in, and those above. `None` if none of them has a quota.
    /// Intervals are marked on a track of the first process.
    ///
    /// # Errors
    /// If the system cannot make a thread or a descriptor.
    pub fn of(pids: &[Pid]) -> io::Result<Option<Self>> {
        let Some(first) = pids.first().copied() else { return Ok(None) };
        let processes: Vec<_> = pids.iter().map(|pid| pid.0.to_string()).collect();
        let groups = limited_groups(&processes);
        if groups.is_empty() {
            return Ok(None);
        }
        let (shared, stop) = (Arc::default(), Arc::new(event_counter()?));
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let watched = groups.into_iter().map(|group| WatchedGroup::new(first, group)).collect();
        let thread = std::thread::Builder::new().name("nyquist-quota".to_owned());
        let thread = thread.spawn(move || watch(watched, &theirs, &stopped))?;
        Ok(Some(Self { shared, stop, thread: Some(thread) }))
    }

    /// Ends watching, and appends what was not collected yet.
    pub fn finish(mut self, events: &mut Vec<Event>) {
        self.end();
        self.collect(events);
    }

    fn end(&mut self) {
        signal(self.stop.as_fd());
        if let Some(thread) = self.thread.take() {
            // It holds nothing that would be lost if it had panicked.
            let _ = thread.join();
        }
    }
}

impl Companion for QuotaWatch {
    fn notice(&mut self, _event: &Event) {}

    fn collect(&mut self, events: &mut Vec<Event>) {
        events.append(&mut lock(&self.shared));
    }
}

impl Drop for QuotaWatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads all groups repeatedly until it is stopped, and then once more.
fn watch(mut groups: Vec<WatchedGroup>, shared: &Mutex<Vec<Event>>, stop: &OwnedFd) {
    let mut poll = PollSet::default();
    let stop = poll.add(stop.as_raw_fd());
    while !poll.ready(stop).readable {
        // A wait that fails would fail again at once.
        if poll.wait(Some(PAUSE_MS)).is_err() {
            break;
        }
        // The lock is taken before the time, so that a collection after that time includes the event.
        let mut events = lock(shared);
        let now = Timestamp(monotonic_ns());
        events.extend(groups.iter_mut().filter_map(|group| group.look(now)));
    }
    let mut events = lock(shared);
    let now = Timestamp(monotonic_ns());
    events.extend(groups.iter_mut().filter_map(|group| group.look(now).or_else(|| group.end(now))));
}

/// A group, and the interval in which it is held up.
#[derive(Debug)]
struct WatchedGroup {
    pid: Pid,
    group: LimitedGroup,
    read_at: Timestamp,
    interval: HeldUpInterval,
}

impl WatchedGroup {
    fn new(pid: Pid, group: LimitedGroup) -> Self {
        let now = Timestamp(monotonic_ns());
        Self { pid, group, read_at: now, interval: HeldUpInterval { grown_at: now, open: None } }
    }

    /// Reads the group. Returns the interval that has ended.
    fn look(&mut self, now: Timestamp) -> Option<Event> {
        let more_ns = self.group.read_more();
        let before = std::mem::replace(&mut self.read_at, now);
        if more_ns == 0 {
            return self.end(before);
        }
        self.interval.grow(now, before, more_ns);
        None
    }

    /// Ends the interval, if there is one.
    fn end(&mut self, at: Timestamp) -> Option<Event> {
        let (start, held_up_ns) = self.interval.open.take()?;
        let marker = quota_marker(self.pid, start, &self.group.label, held_up_ns);
        Some(Event { time: at, cpu: None, kind: EventKind::Marker(Box::new(marker)) })
    }
}

/// When a group was held up. The kernel counts that only when the group may run again.
#[derive(Debug)]
struct HeldUpInterval {
    /// When the count last grew.
    grown_at: Timestamp,
    /// The begin of the interval that has not ended, and the time in it that the group was held up.
    open: Option<(Timestamp, u64)>,
}

impl HeldUpInterval {
    /// The count has grown since a reading before. The time that was added is taken to have just passed, on one
    /// CPU after the other, and not before the count grew the last time.
    fn grow(&mut self, now: Timestamp, before: Timestamp, more_ns: u64) {
        let start = Timestamp(now.0.saturating_sub(more_ns)).min(before).max(self.grown_at);
        self.grown_at = now;
        let (_, held_up_ns) = self.open.get_or_insert((start, 0));
        *held_up_ns = held_up_ns.saturating_add(more_ns);
    }
}

fn lock(shared: &Mutex<Vec<Event>>) -> MutexGuard<'_, Vec<Event>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_begins_before_the_count_grows() {
        let at = Timestamp;
        let mut interval = HeldUpInterval { grown_at: at(0), open: None };
        interval.grow(at(200), at(150), 80);
        assert_eq!(interval.open.take(), Some((at(120), 80)));
        // Two CPUs count twice.
        interval.grow(at(300), at(250), 160);
        interval.grow(at(350), at(300), 10);
        assert_eq!(interval.open.take(), Some((at(200), 170)));
        interval.grow(at(500), at(450), 10);
        assert_eq!(interval.open.take(), Some((at(450), 10)));
    }
}
