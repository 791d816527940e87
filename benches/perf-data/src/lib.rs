//! What the programs of this workspace share.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

pub mod known;

/// What a piece of work took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// By the clock.
    pub wall: Duration,
    /// CPU time of all threads.
    pub cpu: Duration,
}

/// Does something and measures it.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (began, cpu) = (Instant::now(), cpu_time());
    let result = work();
    (result, Took { wall: began.elapsed(), cpu: cpu_time().saturating_sub(cpu) })
}

/// The CPU time that this process has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
