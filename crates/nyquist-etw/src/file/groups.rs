//! The classes of the kernel's events by their group, which short headers have in place of a class.

use crate::Guid;
use crate::kernel::classes;

/// `EVENT_TRACE_GROUP_…` (ntwmi.h).
const HEADER: u8 = 0;
const PROCESS: u8 = 3;
const THREAD: u8 = 5;
const PERF_INFO: u8 = 15;
const IMAGE: u8 = 20;
const STACK_WALK: u8 = 24;

/// The opcode of the load of an image, which is in the group of processes.
const LOAD_IMAGE: u8 = 10;

/// The class of an event with this group and opcode; `None` for those that a profile does not need.
pub(super) fn class(group: u8, opcode: u8) -> Option<Guid> {
    match (group, opcode) {
        (HEADER, _) => Some(classes::EVENT_TRACE),
        (PROCESS, LOAD_IMAGE) | (IMAGE, _) => Some(classes::IMAGE),
        (PROCESS, _) => Some(classes::PROCESS),
        (THREAD, _) => Some(classes::THREAD),
        (PERF_INFO, _) => Some(classes::PERF_INFO),
        (STACK_WALK, _) => Some(classes::STACK_WALK),
        _ => None,
    }
}
