//! What running processes have when their recording begins: threads, names and mappings, read within limits.
//!
//! A user can start thousands of processes that share tens of thousands of mappings. Then the text of their
//! mappings would take gigabytes, and minutes to read.

use super::{proc, target_access};
use nyquist_convert::event::{EventKind, Pid, Tid};
use std::collections::HashMap;

/// The most text of mappings, in bytes, that is read of the processes of one user, and of all processes. A
/// process of usual size has 10,000.
const LIMITS: TextLimits = TextLimits { of_user: 128 << 20, of_all: 512 << 20 };

/// How much text of mappings is read.
#[derive(Clone, Copy)]
struct TextLimits {
    of_user: u64,
    of_all: u64,
}

/// The names of the threads and the executable mappings of processes, as far as they are readable. Beyond the
/// limits, mappings are left out, and are not known.
pub(crate) fn describe(pids: &[u32]) -> Vec<EventKind> {
    describe_within(pids, LIMITS)
}

fn describe_within(pids: &[u32], limits: TextLimits) -> Vec<EventKind> {
    let (mut left_of_users, mut left) = (HashMap::new(), limits.of_all);
    let mut kinds = Vec::new();
    for pid in pids.iter().copied().map(Pid) {
        let threads = proc::threads(pid).unwrap_or_default();
        kinds.extend(threads.into_iter().filter_map(|tid| proc::name(pid, Tid(tid))));
        let left_of_user = left_of_users.entry(proc::effective_user(pid.0)).or_insert(limits.of_user);
        let text = maps_text(pid, left.min(*left_of_user));
        *left_of_user = left_of_user.saturating_sub(text.len() as u64);
        left = left.saturating_sub(text.len() as u64);
        let mappings = text.split(|byte| *byte == b'\n').filter_map(|line| proc::mapping(pid, line));
        kinds.extend(mappings.map(EventKind::Map));
    }
    kinds
}

/// The text of a process's mappings, in whole lines. If there is more than the limit, the rest is missing.
fn maps_text(pid: Pid, most: u64) -> Vec<u8> {
    if most == 0 {
        return Vec::new();
    }
    let mut text = target_access::targets().mappings(Pid(proc::live_thread(pid)), most);
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::Avma;

    fn mapping_count(kinds: &[EventKind]) -> usize {
        kinds.iter().filter(|kind| matches!(kind, EventKind::Map(_))).count()
    }

    #[test]
    fn this_process_has_a_name_and_mappings() {
        let pid = std::process::id();
        let kinds = describe(&[pid]);
        assert!(kinds.iter().any(|kind| matches!(kind, EventKind::Name { tid, .. } if tid.0 == pid)));
        let here = Avma(this_process_has_a_name_and_mappings as fn() as usize as u64);
        let covers = |kind: &EventKind| matches!(kind, EventKind::Map(map) if here.offset_from(map.start).is_some_and(|at| at < map.len));
        assert!(kinds.iter().any(covers));
    }

    #[test]
    fn mappings_beyond_the_limits_are_left_out() {
        let pids = [std::process::id(); 4];
        let len = maps_text(Pid(pids[0]), u64::MAX).len() as u64;
        let whole = mapping_count(&describe(&pids[..1]));
        for limits in [
            TextLimits { of_user: 2 * len, of_all: u64::MAX },
            TextLimits { of_user: u64::MAX, of_all: 2 * len },
        ] {
            let count = mapping_count(&describe_within(&pids, limits));
            assert!((whole + 1..=2 * whole).contains(&count), "{count} for {whole} of one");
        }
        let cut = maps_text(Pid(pids[0]), len / 2);
        assert!((1..=len / 2).contains(&(cut.len() as u64)) && cut.ends_with(b"\n"));
    }
}
