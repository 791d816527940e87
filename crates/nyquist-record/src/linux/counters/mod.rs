//! Counters of the recorded processes: their use of CPU, memory, disks and files, read periodically.
//!
//! A separate thread reads `/proc`. Neither the reader of samples nor the converter waits for it. It uses at
//! most 0.2 % of a CPU: with many processes, each is read less often than 20 times a second.

mod own_io;
mod pace;
mod quantity;
mod switches;
mod texts;
mod watched;

pub use quantity::{CPU_COUNTER, MEMORY_COUNTER};

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nyquist_convert::event::{Counter, CounterKind, Event, EventKind, Pid, Timestamp};

use crate::linux::Companion;
use crate::linux::sys::clock::{monotonic_ns, thread_cpu_ns};
use crate::linux::sys::poll::{PollSet, event_counter, signal};
use quantity::{COUNT, Quantity};
use watched::{MeasuredProcess, QuantityValue, WatchedProcess};

/// How many processes are read: each needs a descriptor.
const MAX_PROCESSES: usize = 256;

/// How many processes may wait for their first reading. In a storm of short ones, most have ended by then.
const MAX_NEW_PROCESSES: usize = 4096;

/// Reads the counters of the recorded processes, and returns them as events.
#[derive(Debug)]
pub struct ProcessCounters {
    shared: Arc<Mutex<ReaderState>>,
    kinds: [Arc<CounterKind>; COUNT],
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ReaderState {
    new: Vec<WatchedProcess>,
    readings: Vec<CounterReading>,
}

/// A value that was read. It is stored instead of an event, which is ten times as large. While a program
/// sleeps, values are not collected for a long time.
#[derive(Clone, Copy, Debug)]
struct CounterReading {
    pid: Pid,
    time: Timestamp,
    value: QuantityValue,
}

impl ProcessCounters {
    /// Reads these processes from now on, and those that [`Companion::notice`] reports. If they are a command
    /// that has just begun (`are_new`), all that they have used so far is counted too. Fails if no thread can
    /// be started.
    pub fn of(pids: &[Pid], are_new: bool) -> io::Result<Self> {
        let subject = |pid: &Pid| WatchedProcess { pid: *pid, parent: None, born: None, is_new: are_new };
        let new = pids.iter().map(subject).collect();
        let shared = Arc::new(Mutex::new(ReaderState { new, readings: Vec::new() }));
        let stop = Arc::new(event_counter()?);
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("nyquist-counters".to_owned());
        let thread = thread.spawn(move || CounterReader::default().run(&theirs, &stopped))?;
        let kinds = Quantity::ALL.map(Quantity::kind);
        Ok(Self { shared, kinds, stop, thread: Some(thread) })
    }

    /// Reads all processes once more, and appends what is left when the recording has ended. A child of the
    /// recorder that has ended is to be waited for only after that.
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

    fn event(&self, pid: Pid, time: Timestamp, quantity: Quantity, value: u64) -> Option<Event> {
        let kind = Arc::clone(self.kinds.get(quantity as usize)?);
        // CPU time is in nanoseconds and is reported in milliseconds.
        let value = if quantity == Quantity::Cpu { value as f64 / 1e6 } else { value as f64 };
        Some(Event { time, cpu: None, kind: EventKind::Counter(Counter { pid, kind, value }) })
    }
}

impl Companion for ProcessCounters {
    /// Notes processes that are born.
    fn notice(&mut self, event: &Event) {
        if let EventKind::Fork { pid, parent_pid, .. } = &event.kind
            && pid != parent_pid
        {
            let mut shared = lock(&self.shared);
            if shared.new.len() < MAX_NEW_PROCESSES {
                let (parent, born) = (Some(*parent_pid), Some(event.time));
                shared.new.push(WatchedProcess { pid: *pid, parent, born, is_new: true });
            }
        }
    }

    fn collect(&mut self, events: &mut Vec<Event>) {
        let readings = std::mem::take(&mut lock(&self.shared).readings);
        for CounterReading { pid, time, value: QuantityValue { quantity, amount, is_first_level } } in
            readings
        {
            // A front end draws the changes of a level, so the first value is a change from zero.
            let before = Timestamp(time.0.saturating_sub(1));
            events.extend(is_first_level.then(|| self.event(pid, before, quantity, 0)).flatten());
            events.extend(self.event(pid, time, quantity, amount));
        }
    }
}

impl Drop for ProcessCounters {
    fn drop(&mut self) {
        self.end();
    }
}

/// The processes whose counters are read.
#[derive(Debug, Default)]
struct CounterReader {
    watched: HashMap<Pid, MeasuredProcess>,
    /// The number of readings in a row in which no process has run.
    quiet_readings: u32,
    /// The contents of a file; kept to reuse its memory.
    text: Vec<u8>,
}

impl CounterReader {
    /// Reads until it is stopped, and then once more.
    fn run(mut self, shared: &Mutex<ReaderState>, stop: &OwnedFd) {
        let mut poll = PollSet::default();
        let stop = poll.add(stop.as_raw_fd());
        let began = monotonic_ns();
        while !poll.ready(stop).readable {
            let cost = thread_cpu_ns();
            self.take_new(shared);
            self.read(shared);
            let cost = Duration::from_nanos(thread_cpu_ns().saturating_sub(cost));
            let passed = Duration::from_nanos(monotonic_ns().saturating_sub(began));
            let pause = pace::pause(passed, cost, self.quiet_readings);
            // A wait that fails would fail again at once.
            if poll.wait(Some(pause.as_millis().try_into().unwrap_or(u32::MAX))).is_err() {
                std::thread::sleep(pause);
            }
        }
        self.take_new(shared);
        self.read(shared);
    }

    /// Opens the processes that were reported since the last time. A process replaces an older one with the
    /// same pid.
    fn take_new(&mut self, shared: &Mutex<ReaderState>) {
        for subject in std::mem::take(&mut lock(shared).new) {
            if let Some(parent) = subject.parent.and_then(|parent| self.watched.get_mut(&parent)) {
                parent.note_child();
            }
            if self.watched.len() >= MAX_PROCESSES {
                break;
            }
            if let Ok(watched) = MeasuredProcess::open(subject, &mut self.text) {
                self.watched.insert(subject.pid, watched);
            }
        }
    }

    /// Reads each process once and drops those that have ended.
    fn read(&mut self, shared: &Mutex<ReaderState>) {
        let (text, mut anybody_ran) = (&mut self.text, false);
        self.watched.retain(|_, watched| {
            let Some(values) = watched.read(text) else { return false };
            anybody_ran |= watched.has_run();
            let pid = watched.pid();
            let mut shared = lock(shared);
            // Under the lock, so that it is among the events that are collected next.
            let time = Timestamp(monotonic_ns());
            shared.readings.extend(values.into_iter().map(|value| CounterReading { pid, time, value }));
            !watched.has_ended()
        });
        self.quiet_readings = if anybody_ran { 0 } else { self.quiet_readings.saturating_add(1) };
    }
}

fn lock(shared: &Mutex<ReaderState>) -> MutexGuard<'_, ReaderState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::Tid;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn fork(pid: u32) -> Event {
        let (parent_pid, parent_tid) = (Pid(1), Tid(1));
        let kind = EventKind::Fork { pid: Pid(pid), tid: Tid(pid), parent_pid, parent_tid };
        Event { time: Timestamp(monotonic_ns()), cpu: None, kind }
    }

    /// The values of a quantity of a process, with their times.
    fn values(events: &[Event], pid: u32, name: &str) -> Vec<(u64, f64)> {
        let value = |event: &Event| match &event.kind {
            EventKind::Counter(counter) if counter.pid.0 == pid && counter.kind.name == name => {
                Some((event.time.0, counter.value))
            }
            _ => None,
        };
        events.iter().filter_map(value).collect()
    }

    #[test]
    fn processes_are_looked_at_from_their_birth() {
        let (mut first, mut second) = (sleeper(), sleeper());
        let mut counters = ProcessCounters::of(&[Pid(first.id())], false).unwrap();
        counters.notice(&fork(second.id()));
        let mut events = Vec::new();
        let is_seen = |events: &[Event], pid: u32| values(events, pid, "Memory").len() > 3;
        while !is_seen(&events, first.id()) || !is_seen(&events, second.id()) {
            std::thread::sleep(pace::MIN_PAUSE);
            counters.collect(&mut events);
        }
        counters.finish(&mut events);
        for child in [&mut first, &mut second] {
            child.kill().unwrap();
            child.wait().unwrap();
            let memory = values(&events, child.id(), "Memory");
            // A child uses little memory before it calls exec.
            assert!(memory[0].1 == 0.0 && memory.iter().any(|(_, bytes)| *bytes > 100_000.0), "{memory:?}");
            assert!(memory.is_sorted_by_key(|(time, _)| *time));
        }
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut reader = CounterReader::default();
        let (mut child, shared) = (sleeper(), Mutex::new(ReaderState::default()));
        let pid = Pid(child.id());
        for born in [None, Some(Timestamp(monotonic_ns()))] {
            lock(&shared).new.push(WatchedProcess { pid, parent: None, born, is_new: true });
            reader.take_new(&shared);
            reader.read(&shared);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let readings = std::mem::take(&mut lock(&shared).readings);
        let firsts = readings.iter().filter(|reading| reading.value.is_first_level).count();
        assert_eq!((reader.watched.len(), firsts), (1, 6));
        reader.read(&shared);
        assert!(reader.watched.is_empty() && lock(&shared).readings.is_empty());
    }

    #[test]
    fn a_storm_of_processes_is_bounded() {
        let mut counters = ProcessCounters::of(&[], false).unwrap();
        counters.end();
        (0..2 * MAX_NEW_PROCESSES).for_each(|_| counters.notice(&fork(2)));
        assert_eq!(lock(&counters.shared).new.len(), MAX_NEW_PROCESSES);
    }
}
