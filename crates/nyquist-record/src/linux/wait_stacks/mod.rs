//! Where threads wait: a thread that checks the recorded threads from outside and reads the stacks of waiting
//! ones.
//!
//! Nothing is stopped. A thread that waits in the kernel keeps its registers and its stack until it
//! continues, and the kernel exposes both (`/proc/PID/task/TID/syscall`). The times of waits come from the
//! recording's context switches.

mod watched;
mod watched_thread;

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nyquist_convert::event::{Event, EventKind};

use watched::WatchedThreads;

use crate::linux::Companion;
use crate::linux::sys::clock::thread_cpu_ns;
use crate::linux::sys::poll::{PollSet, event_counter, signal};
use crate::linux::sys::process::Preference;

/// The minimum and the maximum time between two rounds, in milliseconds.
const PAUSE_MS: (u64, u64) = (1, 500);

/// How many times longer than a round the following pause is: all rounds together use 2 % of one CPU.
const PAUSE_PER_ROUND: u64 = 49;

/// Reads the stacks of recorded threads that wait.
#[derive(Debug)]
pub struct WaitStacks {
    shared: Arc<Mutex<WatchedThreads>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl WaitStacks {
    /// Starts the thread, which watches the threads that [`Companion::notice`] reports.
    ///
    /// # Errors
    /// If the system cannot make a thread or a descriptor.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(WatchedThreads::default()));
        let stop = Arc::new(event_counter()?);
        let (theirs, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("nyquist-waits".to_owned());
        let thread = thread.spawn(move || check_repeatedly(&theirs, &stopped))?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// Appends the events not collected yet, and returns how many threads this process may not read.
    pub fn finish(mut self, events: &mut Vec<Event>) -> usize {
        self.end();
        self.collect(events);
        lock(&self.shared).refused()
    }

    fn end(&mut self) {
        signal(self.stop.as_fd());
        if let Some(thread) = self.thread.take() {
            // It holds nothing that would be lost if it had panicked.
            let _ = thread.join();
        }
    }
}

impl Companion for WaitStacks {
    /// Notes threads that are born, exist already, or end.
    fn notice(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Fork { pid, tid, .. } => lock(&self.shared).add(pid.0, tid.0),
            EventKind::Name { pid, tid, exec, .. } => {
                let mut threads = lock(&self.shared);
                if *exec {
                    threads.forget_memory(pid.0);
                }
                threads.add(pid.0, tid.0);
            }
            EventKind::Exit { tid, .. } => lock(&self.shared).remove(tid.0),
            _ => {}
        }
    }

    fn collect(&mut self, events: &mut Vec<Event>) {
        events.append(&mut lock(&self.shared).events);
    }
}

impl Drop for WaitStacks {
    fn drop(&mut self) {
        self.end();
    }
}

/// Checks all threads repeatedly until it is stopped. The lock is held for one thread at a time. It is taken
/// before the event's time and released when the event is stored, so that a collection after that time
/// includes it.
fn check_repeatedly(shared: &Mutex<WatchedThreads>, stop: &OwnedFd) {
    let mut poll = PollSet::default();
    let stop = poll.add(stop.as_raw_fd());
    let (mut pause, mut used) = (PAUSE_MS.0, thread_cpu_ns());
    let mut tids = Vec::new();
    let _preference = Preference::of_this_thread();
    while !poll.ready(stop).readable {
        // A wait that fails would fail again at once.
        if poll.wait(Some(pause as u32)).is_err() {
            return;
        }
        lock(shared).tids(&mut tids);
        for tid in &tids {
            lock(shared).check(*tid);
        }
        let now = thread_cpu_ns();
        let took = now.saturating_sub(std::mem::replace(&mut used, now));
        pause = (took.saturating_mul(PAUSE_PER_ROUND) / 1_000_000).clamp(PAUSE_MS.0, PAUSE_MS.1);
    }
}

fn lock(shared: &Mutex<WatchedThreads>) -> MutexGuard<'_, WatchedThreads> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use nyquist_convert::event::{Pid, Tid, Timestamp, WaitReason};

    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_seen_to() {
        let (sender, tid) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            let tid = link.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            sender.send(tid.unwrap()).unwrap();
            while ended.try_recv().is_err() {
                thread::sleep(Duration::from_millis(200));
            }
        });
        let tid = tid.recv().unwrap();
        let mut waits = WaitStacks::start().unwrap();
        let (pid, parent) = (Pid(std::process::id()), Pid(1));
        let kind = EventKind::Fork { pid, tid: Tid(tid), parent_pid: parent, parent_tid: Tid(1) };
        waits.notice(&Event { time: Timestamp(0), cpu: None, kind });
        let mut events = Vec::new();
        while events.is_empty() {
            thread::sleep(Duration::from_millis(5));
            waits.collect(&mut events);
        }
        end.send(()).unwrap();
        assert_eq!(waits.finish(&mut events), 0);
        let EventKind::Waiting(waiting) = &events[0].kind else { panic!("{events:?}") };
        assert_eq!((waiting.sample.tid, waiting.reason), (Tid(tid), WaitReason::Sleep));
        sleeper.join().unwrap();
    }
}
