//! The process of the command: it is signalled, waited for and ended, and never another one that got its number.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::status::ExitStatus;
use crate::request::KILL;

/// How often, and at which interval, a process that must end is signalled.
const MAX_ATTEMPTS: u32 = 100;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);
/// The error of a signal to a process that is not there (`ESRCH`).
const NO_PROCESS: i32 = 3;

/// How a process of ours has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReapedChild {
    /// The status as wait(2) describes it.
    pub(crate) status: i32,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

/// How a command ended, and its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// How it ended.
    pub status: ExitStatus,
    /// Its CPU time in user code, with that of the children that it has waited for.
    pub user: Duration,
    /// Its CPU time in the kernel, with that of the children that it has waited for.
    pub system: Duration,
}

/// The calls of the system for children of this process that were not reaped.
pub(crate) trait ChildCalls {
    /// Sends a signal.
    fn signal(&self, pid: u32, number: i32) -> io::Result<()>;
    /// Lets a suspended process run.
    fn resume(&self, pid: u32) -> io::Result<()>;
    /// Waits until one has ended, and does not reap it.
    fn await_end(&self, pid: u32) -> io::Result<()>;
    /// Reaps one, and waits for its end if it has not ended.
    fn reap(&self, pid: u32) -> io::Result<ReapedChild>;
    /// Reaps one if it has ended.
    fn reap_if_ended(&self, pid: u32) -> io::Result<Option<ReapedChild>>;
    /// Waits for a time.
    fn pause(&self, time: Duration);
}

/// A child, whose number is not used again until it is reaped. One that has not run is ended when this is
/// dropped, so that nothing is lost.
#[derive(Debug)]
pub(crate) struct ChildProcess<C: ChildCalls> {
    pub(crate) pid: u32,
    calls: C,
    has_started: AtomicBool,
    /// Its end, when it is reaped.
    ended: Mutex<Option<ReapedChild>>,
}

impl<C: ChildCalls> ChildProcess<C> {
    /// The child with this number, which waits for its start.
    pub(crate) fn new(pid: u32, calls: C) -> Self {
        Self { pid, calls, has_started: AtomicBool::new(false), ended: Mutex::new(None) }
    }

    /// Lets it run.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.calls.resume(self.pid)?;
        self.has_started.store(true, Ordering::Release);
        Ok(())
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&self) -> io::Result<ChildExit> {
        // Nobody is kept from signalling it meanwhile. If another thread has reaped it, the wait fails.
        let _ = self.calls.await_end(self.pid);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let reaped = match *ended {
            Some(reaped) => reaped,
            None => *ended.insert(self.calls.reap(self.pid)?),
        };
        let status = ExitStatus::of_wait(reaped.status);
        Ok(ChildExit { status, user: reaped.user, system: reaped.system })
    }

    /// Sends a signal. It is no error if it has ended already.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_some() {
            return Ok(());
        }
        match self.calls.signal(self.pid, signal) {
            Err(error) if error.raw_os_error() == Some(NO_PROCESS) => Ok(()),
            result => result,
        }
    }

    /// Ends it. It is not waited for for ever, because a suspended process may be slow to end.
    fn end(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..MAX_ATTEMPTS {
            if ended.is_some() {
                return;
            }
            let _ = self.calls.signal(self.pid, KILL);
            let _ = self.calls.resume(self.pid);
            match self.calls.reap_if_ended(self.pid) {
                Ok(None) => self.calls.pause(BETWEEN_ATTEMPTS),
                Ok(reaped @ Some(_)) => *ended = reaped,
                Err(_) => return,
            }
        }
    }
}

impl<C: ChildCalls> Drop for ChildProcess<C> {
    fn drop(&mut self) {
        if !*self.has_started.get_mut() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    const PID: u32 = 7;

    /// A system with one child.
    #[derive(Default)]
    struct SimulatedChild {
        /// How many more looks it takes until the child has ended.
        looks: Cell<u32>,
        is_reaped: Cell<bool>,
        signal_error: Option<i32>,
        done: RefCell<Vec<String>>,
    }

    impl SimulatedChild {
        fn note(&self, what: &str, pid: u32) {
            assert_eq!(pid, PID);
            assert!(!self.is_reaped.get(), "{what} for a number that may be another process's");
            self.done.borrow_mut().push(what.to_owned());
        }
    }

    impl ChildCalls for &SimulatedChild {
        fn signal(&self, pid: u32, number: i32) -> io::Result<()> {
            self.note(&format!("signal {number}"), pid);
            self.signal_error.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
        }

        fn resume(&self, pid: u32) -> io::Result<()> {
            self.note("resume", pid);
            Ok(())
        }

        fn await_end(&self, pid: u32) -> io::Result<()> {
            if self.is_reaped.get() {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.note("await", pid);
            Ok(())
        }

        fn reap(&self, pid: u32) -> io::Result<ReapedChild> {
            self.note("reap", pid);
            self.is_reaped.set(true);
            Ok(ReapedChild { status: 3 << 8, user: Duration::from_secs(1), system: Duration::ZERO })
        }

        fn reap_if_ended(&self, pid: u32) -> io::Result<Option<ReapedChild>> {
            let looks = self.looks.get();
            self.looks.set(looks.saturating_sub(1));
            if looks > 0 { Ok(None) } else { self.reap(pid).map(Some) }
        }

        fn pause(&self, time: Duration) {
            assert!(time < Duration::from_secs(1));
        }
    }

    #[test]
    fn a_reaped_child_is_not_signalled() {
        let system = SimulatedChild::default();
        let child = ChildProcess::new(PID, &system);
        child.start().unwrap();
        child.signal(2).unwrap();
        for _ in 0..2 {
            let exit = child.wait().unwrap();
            assert_eq!((exit.status, exit.user), (ExitStatus::Code(3), Duration::from_secs(1)));
        }
        child.signal(2).unwrap();
        drop(child);
        assert_eq!(*system.done.borrow(), ["resume", "signal 2", "await", "reap"]);
    }

    #[test]
    fn a_signal_to_an_ended_child_is_no_error() {
        let send = |error| {
            let system = SimulatedChild { signal_error: Some(error), ..SimulatedChild::default() };
            ChildProcess::new(PID, &system).signal(15).map_err(|error| error.raw_os_error())
        };
        assert_eq!((send(NO_PROCESS), send(1)), (Ok(()), Err(Some(1))));
    }

    #[test]
    fn an_unstarted_child_is_ended_until_it_is_gone() {
        let system = SimulatedChild { looks: Cell::new(2), ..SimulatedChild::default() };
        drop(ChildProcess::new(PID, &system));
        let attempt = ["signal 9", "resume"];
        let expected = [&attempt[..], &attempt, &attempt, &["reap"]].concat();
        assert_eq!(*system.done.borrow(), expected);
    }

    #[test]
    fn a_child_that_ended_early_is_reaped_once() {
        let system = SimulatedChild::default();
        let child = ChildProcess::new(PID, &system);
        assert_eq!(child.wait().unwrap().status, ExitStatus::Code(3));
        drop(child);
        assert_eq!(*system.done.borrow(), ["await", "reap"], "its number is not used any more");
    }

    #[test]
    fn a_child_that_was_started_lives_on() {
        let system = SimulatedChild::default();
        ChildProcess::new(PID, &system).start().unwrap();
        assert_eq!(*system.done.borrow(), ["resume"]);
    }

    #[test]
    fn a_child_that_never_ends_is_left() {
        let system = SimulatedChild { looks: Cell::new(u32::MAX), ..SimulatedChild::default() };
        drop(ChildProcess::new(PID, &system));
        assert_eq!(system.done.borrow().len(), 2 * MAX_ATTEMPTS as usize);
    }
}
