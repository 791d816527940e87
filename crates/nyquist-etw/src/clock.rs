//! The clocks that events are stamped with.

/// The kind of clock that a session stamps its events with (evntrace.h and the documentation of
/// `WNODE_HEADER::ClientContext`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// The performance counter (`QueryPerformanceCounter`), which is the default.
    PerformanceCounter,
    /// The system's time, in units of 100 nanoseconds since 1601.
    SystemTime,
    /// The CPU's counter of cycles.
    CpuCycles,
}

/// Units of an event's time, and how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    kind: ClockKind,
    per_second: u64,
}

impl Clock {
    /// The performance counter, with its frequency (`QueryPerformanceFrequency`). A frequency of 0 is taken as
    /// 10 MHz, which Windows has used on all hardware since version 1809.
    pub const fn performance_counter(per_second: u64) -> Self {
        let per_second = if per_second == 0 { 10_000_000 } else { per_second };
        Self { kind: ClockKind::PerformanceCounter, per_second }
    }

    /// The system's time.
    pub const fn system_time() -> Self {
        Self { kind: ClockKind::SystemTime, per_second: 10_000_000 }
    }

    /// Cycles of a CPU with this speed. A speed of 0 is taken as 1 GHz.
    pub const fn cpu_cycles(mhz: u32) -> Self {
        let mhz = if mhz == 0 { 1000 } else { mhz };
        Self { kind: ClockKind::CpuCycles, per_second: mhz as u64 * 1_000_000 }
    }

    /// Its kind.
    pub const fn kind(self) -> ClockKind {
        self.kind
    }

    /// Nanoseconds since the clock's zero. Times beyond what 64 bits hold become the last one.
    pub fn nanoseconds(self, time: u64) -> u64 {
        let nanoseconds = u128::from(time) * 1_000_000_000 / u128::from(self.per_second);
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_nanoseconds() {
        assert_eq!(Clock::performance_counter(2_500_000).nanoseconds(5), 2000);
        assert_eq!(Clock::performance_counter(0).nanoseconds(10_000_000), 1_000_000_000);
        assert_eq!(Clock::system_time().nanoseconds(1), 100);
        assert_eq!(Clock::cpu_cycles(2000).nanoseconds(2000), 1000);
        assert_eq!(Clock::cpu_cycles(1).nanoseconds(u64::MAX), u64::MAX);
    }
}
