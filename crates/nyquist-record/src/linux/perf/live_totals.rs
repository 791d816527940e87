//! Reads the CPU time of living threads from time to time. The kernel writes it only when a thread ends, but
//! views of a running recording show it, and it tells when a thread was in the kernel.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nyquist_convert::event::{Event, Timestamp};

use super::events::OpenedEvents;
use super::totals::ThreadTotals;
use crate::linux::sys::clock::{monotonic_ns, thread_cpu_ns};

/// The shortest time between two readings.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// The share of a CPU's time that readings may use, as a divisor: 0.2 %. They read every process of the
/// system.
const SHARE: u32 = 500;

/// The state of the readings.
#[derive(Debug)]
pub(crate) struct LiveTotals {
    totals: Arc<ThreadTotals>,
    next: Instant,
}

impl LiveTotals {
    /// Reads for the first time after the shortest pause.
    pub(crate) fn new(totals: Arc<ThreadTotals>) -> Self {
        Self { totals, next: Instant::now() + MIN_PAUSE }
    }

    /// The totals of the living threads, if it is time to read them.
    pub(crate) fn take_due(&mut self, events: &OpenedEvents) -> Vec<Event> {
        if Instant::now() < self.next {
            return Vec::new();
        }
        let began = thread_cpu_ns();
        let live = self.totals.of_live(events);
        let time = Timestamp(monotonic_ns());
        let cost = Duration::from_nanos(thread_cpu_ns().saturating_sub(began));
        self.next = Instant::now() + pause_after(cost);
        live.into_iter().map(|thread| thread.total(time)).collect()
    }
}

fn pause_after(cost: Duration) -> Duration {
    MIN_PAUSE.max(cost.saturating_mul(SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_use_a_small_share_of_a_cpu() {
        let pauses = [0, 2, 10].map(|cost_ms| pause_after(Duration::from_millis(cost_ms)).as_secs());
        assert_eq!(pauses, [1, 1, 5]);
    }
}
