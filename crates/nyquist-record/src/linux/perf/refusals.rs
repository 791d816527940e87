//! What the kernel refuses to open, as errors, and what it grants this process.

use std::io;

use nyquist_convert::event::Pid;

use super::attr::{CommonAttr, Features, Reach, Trigger, sideband};
use super::open_error::{Hint, OpenError};
use super::scope::RecordedScope;
use crate::linux::options::CallGraph;
use crate::linux::sys::event::{self, Subject};
use crate::linux::target_access;
use crate::linux::thread_events::withholding;

/// Converts the kernel's refusal to open an event into an error.
pub(crate) fn open_error(source: io::Error, scope: RecordedScope<'_>) -> OpenError {
    if let Some(pid) = withholding(&source) {
        return OpenError::NoAccess { pid };
    }
    let by_cpu = scope.reach() == Reach::Cpu;
    match source.raw_os_error() {
        Some(libc::ESRCH) => OpenError::NoSuchProcess { pid: scope.pid() },
        Some(libc::EMFILE | libc::ENFILE) => OpenError::Descriptors { events: 0 },
        Some(libc::EACCES | libc::EPERM) if own_events_are_allowed() => {
            if by_cpu {
                OpenError::OthersNotAllowed
            } else {
                OpenError::AnotherUsers { pid: scope.pid() }
            }
        }
        _ => {
            let hint = Hint::for_error(&source);
            OpenError::Refused { source, hint }
        }
    }
}

/// The processes that can be attached to without waiting for them.
///
/// # Errors
/// If it is none of them.
pub(crate) fn answering(pids: &[Pid]) -> Result<Vec<Pid>, OpenError> {
    let answering: Vec<Pid> =
        pids.iter().copied().filter(|pid| !target_access::withholds_itself(pid.0)).collect();
    match pids {
        [pid, ..] if answering.is_empty() => Err(OpenError::NoAccess { pid: *pid }),
        _ => Ok(answering),
    }
}

/// The minimum that can be requested.
const NOTHING: Features =
    Features { trigger: Trigger::CpuClock, kernel: false, lost: false, kernel_code: false };

/// Whether this thread may at least count its own clock.
fn own_events_are_allowed() -> bool {
    let reach = Reach::Thread { from_exec: false };
    let common = CommonAttr {
        features: NOTHING,
        reach,
        switches: false,
        call_graph: CallGraph::Auto,
        has_additional_events: false,
        starts_paused: false,
    };
    event::open(sideband(common, 1), Subject::Thread(0), 0).is_ok()
}

/// Whether this process may record other processes on a CPU.
pub(crate) fn cpus_may_be_watched(cpu: u32) -> bool {
    let features = Features { kernel: true, ..NOTHING };
    let common = CommonAttr {
        features,
        reach: Reach::Cpu,
        switches: false,
        call_graph: CallGraph::Auto,
        has_additional_events: false,
        starts_paused: false,
    };
    event::open(sideband(common, 1), Subject::Everyone, cpu).is_ok()
}
