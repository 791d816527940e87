//! Waits for the end of the counted processes or thread, the end of an interval, or a stop request.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nyquist_convert::event::Tid;

use crate::linux::StopHandle;
use crate::linux::proc;
use crate::linux::sys::poll::{PollSet, event_counter, process_descriptor};

/// How often to check whether a process lives, if the kernel has no pidfds (before Linux 5.3), or a thread.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// All processes have ended, or the thread.
    Exited,
    /// [`StopHandle::stop`] was called.
    Stopped,
    /// The time has come.
    Time,
}

/// Waits for processes, or for a thread.
#[derive(Debug)]
pub struct Waiter {
    poll: PollSet,
    stop_place: usize,
    stop: StopHandle,
    waited_for: Vec<WaitedFor>,
}

#[derive(Debug)]
enum WaitedFor {
    Descriptor {
        place: usize,
        _open: OwnedFd,
    },
    Number(u32),
    /// Only newer kernels have pidfds of threads.
    Thread(u32),
}

impl Waiter {
    /// Waits for these processes. Without any, it waits for a stop request.
    pub fn new(pids: &[u32]) -> io::Result<Self> {
        let mut waiter = Self::for_nothing()?;
        let Self { poll, waited_for, .. } = &mut waiter;
        for pid in pids {
            match process_descriptor(*pid) {
                Ok(open) => {
                    waited_for.push(WaitedFor::Descriptor { place: poll.add(open.as_raw_fd()), _open: open });
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(_) => waited_for.push(WaitedFor::Number(*pid)),
            }
        }
        if !pids.is_empty() && waited_for.is_empty() {
            // All have ended already: an unused pid counts as ended at once.
            waited_for.extend(pids.first().map(|pid| WaitedFor::Number(*pid)));
        }
        Ok(waiter)
    }

    /// Waits for a thread, whether its process goes on or not.
    pub fn for_thread(tid: Tid) -> io::Result<Self> {
        Ok(Self { waited_for: vec![WaitedFor::Thread(tid.0)], ..Self::for_nothing()? })
    }

    fn for_nothing() -> io::Result<Self> {
        let counter = Arc::new(event_counter()?);
        let mut poll = PollSet::default();
        let stop_place = poll.add(counter.as_raw_fd());
        Ok(Self { poll, stop_place, stop: StopHandle { counter }, waited_for: Vec::new() })
    }

    /// A handle that ends the wait, from any thread.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Waits until all processes or the thread have ended, it is stopped, or a time has come.
    pub fn wait(&mut self, until: Option<Instant>) -> io::Result<WaitEnd> {
        let ends = !self.waited_for.is_empty();
        // Even if the time has come already, earlier events are still noticed.
        self.poll.wait(Some(0))?;
        loop {
            self.remove_ended();
            if ends && self.waited_for.is_empty() {
                return Ok(WaitEnd::Exited);
            }
            if self.poll.ready(self.stop_place).readable {
                return Ok(WaitEnd::Stopped);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(WaitEnd::Time);
            }
            let looks = self.waited_for.iter().any(|it| !matches!(it, WaitedFor::Descriptor { .. }));
            let most = if looks { Some(LOOK_EVERY) } else { None };
            let timeout = left.into_iter().chain(most).min();
            // Rounded up, so that it does not repeatedly wake up too early.
            self.poll.wait(timeout.map(|time| time.as_micros().div_ceil(1000) as u32))?;
        }
    }

    fn remove_ended(&mut self) {
        let Self { poll, waited_for, .. } = self;
        waited_for.retain(|waited| match waited {
            WaitedFor::Descriptor { place, .. } => {
                let ready = poll.ready(*place);
                let ended = ready.readable || ready.hung_up;
                if ended {
                    poll.replace(*place, None);
                }
                !ended
            }
            WaitedFor::Number(pid) => !proc::has_ended(*pid),
            WaitedFor::Thread(tid) => !proc::thread_has_ended(*tid),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_waited_for() {
        let mut child = Command::new("sleep").arg("0.05").spawn().unwrap();
        let mut waiter = Waiter::new(&[child.id()]).unwrap();
        assert_eq!(waiter.wait(Some(Instant::now())).unwrap(), WaitEnd::Time);
        assert_eq!(waiter.wait(None).unwrap(), WaitEnd::Exited);
        child.wait().unwrap();
        let mut late = Waiter::new(&[child.id()]).unwrap();
        assert_eq!(late.wait(None).unwrap(), WaitEnd::Exited);
    }

    #[test]
    fn the_end_of_a_thread_is_waited_for() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (say, tid_of) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            say.send(own.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
            let _ = ended.recv();
        });
        let mut waiter = Waiter::for_thread(Tid(tid_of.recv().unwrap())).unwrap();
        assert_eq!(waiter.wait(Some(Instant::now())).unwrap(), WaitEnd::Time);
        drop(end);
        assert_eq!(waiter.wait(None).unwrap(), WaitEnd::Exited);
        thread.join().unwrap();
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let mut waiter = Waiter::new(&[]).unwrap();
        let stop = waiter.stop_handle();
        let stopper = std::thread::spawn(move || stop.stop());
        assert_eq!(waiter.wait(None).unwrap(), WaitEnd::Stopped);
        stopper.join().unwrap();
    }
}
