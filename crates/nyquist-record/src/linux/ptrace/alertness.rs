//! How to wait for a thread that was asked to stop.

use crate::linux::sys::ptrace::Patience;

/// How long to poll whether a thread on another CPU has stopped; this takes it some microseconds.
const ALERT_NS: u64 = 20_000;
/// How many threads are waited for by sleeping after one that did not answer. It may wait for the very CPU
/// that polls.
const ASLEEP: u32 = 16;

/// How to wait for a thread that was asked to stop. Sleeping on an otherwise idle CPU and being woken takes
/// several times as long as the thread's answer. But if the thread has no CPU, polling may keep it from one.
#[derive(Debug, Default)]
pub(crate) struct Alertness {
    /// How many more threads are waited for by sleeping.
    asleep: u32,
}

impl Alertness {
    /// How to start waiting for the next thread.
    pub(crate) fn begin(&mut self) -> Patience {
        if self.asleep == 0 {
            return Patience::None;
        }
        self.asleep -= 1;
        Patience::UntilSignal
    }

    /// How to continue after it has not answered for some time.
    pub(crate) fn go_on(&mut self, waited_ns: u64) -> Patience {
        if waited_ns < ALERT_NS {
            return Patience::None;
        }
        self.asleep = ASLEEP;
        Patience::UntilSignal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_makes_the_next_waits_sleep() {
        let mut alertness = Alertness::default();
        for _ in 0..3 {
            assert_eq!(alertness.begin(), Patience::None);
            assert_eq!(alertness.go_on(ALERT_NS - 1), Patience::None);
        }
        assert_eq!(alertness.go_on(ALERT_NS), Patience::UntilSignal);
        let begun: Vec<_> = (0..=ASLEEP).map(|_| alertness.begin()).collect();
        let (last, before) = begun.split_last().unwrap();
        assert!(before.iter().all(|patience| *patience == Patience::UntilSignal), "{begun:?}");
        assert_eq!(*last, Patience::None);
    }
}
