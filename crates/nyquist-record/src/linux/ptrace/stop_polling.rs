//! How to wait for a thread that was requested to stop.

use crate::linux::sys::ptrace::WaitMode;

/// How long to poll whether a thread on another CPU has stopped; this takes it some microseconds.
const POLLING_NS: u64 = 20_000;
/// How many threads are waited for by sleeping after one that did not answer. It may wait for the very CPU
/// that polls.
const SLEEPING_WAITS: u32 = 16;

/// How to wait for a thread that was requested to stop. Sleeping on an otherwise idle CPU and being woken takes
/// several times as long as the thread's answer. But polling can delay a thread that waits for a CPU.
#[derive(Debug, Default)]
pub(crate) struct StopPolling {
    /// How many more threads are waited for by sleeping.
    sleeping_waits: u32,
}

impl StopPolling {
    /// How to start waiting for the next thread.
    pub(crate) fn begin(&mut self) -> WaitMode {
        if self.sleeping_waits == 0 {
            return WaitMode::Poll;
        }
        self.sleeping_waits -= 1;
        WaitMode::UntilSignal
    }

    /// How to continue after it has not answered for some time.
    pub(crate) fn go_on(&mut self, waited_ns: u64) -> WaitMode {
        if waited_ns < POLLING_NS {
            return WaitMode::Poll;
        }
        self.sleeping_waits = SLEEPING_WAITS;
        WaitMode::UntilSignal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_makes_the_next_waits_sleep() {
        let mut stop_polling = StopPolling::default();
        for _ in 0..3 {
            assert_eq!(stop_polling.begin(), WaitMode::Poll);
            assert_eq!(stop_polling.go_on(POLLING_NS - 1), WaitMode::Poll);
        }
        assert_eq!(stop_polling.go_on(POLLING_NS), WaitMode::UntilSignal);
        let begun: Vec<_> = (0..=SLEEPING_WAITS).map(|_| stop_polling.begin()).collect();
        let (last, before) = begun.split_last().unwrap();
        assert!(before.iter().all(|mode| *mode == WaitMode::UntilSignal), "{begun:?}");
        assert_eq!(*last, WaitMode::Poll);
    }
}
