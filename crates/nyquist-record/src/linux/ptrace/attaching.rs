//! Attaching that does not wait for ever. The kernel waits for a process that calls exec (`cred_guard_mutex`), and no
//! signal interrupts that wait. So another thread gives up, and leaves the tracing thread behind.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use nyquist_convert::event::Pid;

use super::outcome::OpenError;

/// How long attaching to one thread may take, at least.
const PATIENCE: Duration = Duration::from_secs(4);

/// What the tracing thread attaches to now.
#[derive(Debug, Default)]
pub(super) struct Attaching {
    /// The process; 0 if none.
    pid: AtomicU32,
    /// The number of attempts so far.
    attempts: AtomicU64,
}

impl Attaching {
    /// Attaches to a thread of a process by calling `seize`.
    pub(super) fn to<T>(&self, pid: Pid, seize: impl FnOnce() -> T) -> T {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.pid.store(pid.0, Ordering::Release);
        let result = seize();
        self.pid.store(0, Ordering::Release);
        result
    }

    /// Waits for what the tracing thread sends when it has attached to all.
    pub(super) fn wait<T>(&self, attached: &Receiver<T>) -> Result<T, OpenError> {
        self.wait_by(PATIENCE, attached)
    }

    fn wait_by<T>(&self, patience: Duration, attached: &Receiver<T>) -> Result<T, OpenError> {
        let mut before = 0;
        loop {
            match attached.recv_timeout(patience) {
                Ok(received) => return Ok(received),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(OpenError::Lacking { what: "the tracing thread has ended by itself" });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let pid = self.pid.load(Ordering::Acquire);
            let attempts = self.attempts.load(Ordering::Relaxed);
            if pid != 0 && attempts == before {
                return Err(OpenError::NoAccess { pid: Pid(pid) });
            }
            before = attempts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn who_cannot_be_attached_to_is_given_up() {
        let (_sender, attached) = channel::<()>();
        let attaching = Attaching::default();
        let error = attaching.to(Pid(7), || attaching.wait_by(SHORT, &attached)).unwrap_err();
        assert!(matches!(error, OpenError::NoAccess { pid: Pid(7) }), "{error}");
    }

    #[test]
    fn what_comes_late_is_waited_for() {
        let (sender, attached) = channel();
        let attaching = Attaching::default();
        attaching.to(Pid(7), || ());
        let late = std::thread::spawn(move || {
            std::thread::sleep(10 * SHORT);
            sender.send(8)
        });
        assert_eq!(attaching.wait_by(SHORT, &attached).unwrap(), 8);
        late.join().unwrap().unwrap();
        assert!(matches!(attaching.wait_by(SHORT, &attached), Err(OpenError::Lacking { .. })));
    }
}
