//! Determines what to read of threads' stacks, from the reported truncated copies.

use std::collections::HashMap;

use super::truncated_stack::TruncatedStack;

/// If a sample is older than this when it is reported, it does not represent the current stack.
pub(super) const FRESH_NS: u64 = 8_000_000;

/// What to read for a thread: its stack from the innermost end of these copies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadRequest {
    pub(super) pid: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) oldest_ns: u64,
    pub(super) newest_ns: u64,
    /// Whether a copy was reported; otherwise the stack is read for possible later samples.
    pub(super) is_reported: bool,
}

/// Adds a copy to the request for its thread. Of old samples, only the thread is used.
pub(super) fn add(requested: &mut HashMap<u32, ReadRequest>, copy: TruncatedStack) {
    let TruncatedStack { pid, start, end, time_ns, .. } = copy;
    let (oldest_ns, newest_ns) = (time_ns, time_ns);
    let new = ReadRequest { pid, start, end, oldest_ns, newest_ns, is_reported: true };
    requested
        .entry(copy.tid)
        .and_modify(|known| {
            let is_fresh = copy.time_ns.saturating_sub(known.oldest_ns) < FRESH_NS;
            *known = if is_fresh && known.pid == copy.pid {
                let (oldest_ns, newest_ns) = (known.oldest_ns.min(time_ns), known.newest_ns.max(time_ns));
                let (start, end) = (known.start.min(start), known.end.min(end));
                ReadRequest { start, end, oldest_ns, newest_ns, ..new }
            } else {
                new
            };
        })
        .or_insert(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncated(time_ns: u64, end: u64) -> TruncatedStack {
        TruncatedStack { pid: 1, tid: 2, time_ns, start: end - 0x1000, end }
    }

    #[test]
    fn the_wanted_part_begins_at_the_innermost_copy() {
        let check = |copies: &[TruncatedStack], expected| {
            let mut requested = HashMap::new();
            for copy in copies {
                add(&mut requested, *copy);
            }
            let ReadRequest { end, oldest_ns, .. } = requested[&2];
            assert_eq!((oldest_ns, end), expected, "{copies:?}");
        };
        check(&[truncated(100, 0x5000)], (100, 0x5000));
        check(&[truncated(100, 0x5000), truncated(200, 0x4000), truncated(150, 0x6000)], (100, 0x4000));
        check(&[truncated(100, 0x5000), truncated(100 + FRESH_NS, 0x9000)], (100 + FRESH_NS, 0x9000));
    }
}
