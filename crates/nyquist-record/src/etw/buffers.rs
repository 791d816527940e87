//! How many of the kernel's buffers a session has.

/// The size of a buffer in kilobytes, and the fewest and the most of them for each CPU. At the highest rate, a CPU
/// with deep stacks fills some 10 MB a second, and a flush comes every second.
pub(crate) const BUFFER_KB: u32 = 256;
const MIN_BUFFERS: u64 = 16;
const MAX_BUFFERS: u64 = 64;
/// The fewest that a session can have for each CPU (documentation of `EVENT_TRACE_PROPERTIES::MinimumBuffers`).
const MIN_BUFFERS_PER_CPU: u64 = 2;
/// Buffers are memory that is never paged out. They may take one of this many parts of the machine's memory: at the
/// beginning, and in a burst.
const PART_AT_ONCE: u64 = 64;
const PART_IN_ALL: u64 = 16;

/// The fewest and the most buffers of a session on a machine with this many CPUs and bytes of memory.
pub(crate) fn counts(cpus: usize, memory_bytes: u64) -> (u32, u32) {
    let cpus = (cpus as u64).max(1);
    let count = |requested: u64, part: u64| {
        let allowed = memory_bytes / part / (u64::from(BUFFER_KB) << 10);
        let count = cpus.saturating_mul(requested).min(allowed).max(cpus.saturating_mul(MIN_BUFFERS_PER_CPU));
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    (count(MIN_BUFFERS, PART_AT_ONCE), count(MAX_BUFFERS, PART_IN_ALL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_a_part_of_the_memory() {
        const GB: u64 = 1 << 30;
        assert_eq!(counts(4, 32 * GB), (64, 256));
        assert_eq!(counts(64, 4 * GB), (256, 1024), "64 and 256 MB instead of 256 and 1024");
        assert_eq!(counts(128, GB / 4), (256, 256), "fewer than two for each CPU are refused");
        assert_eq!(counts(0, 0), (2, 2));
    }
}
