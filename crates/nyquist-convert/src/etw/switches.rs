//! Context switches: which thread each CPU runs, and why the others wait.

use crate::event::WaitReason;
use nyquist_etw::kernel::{self, ContextSwitch};
use rustc_hash::FxHashMap;

/// The threads that run and those that wait.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// The thread that each CPU runs.
    running: FxHashMap<u16, u32>,
    /// What the threads that have left a CPU wait for; `None` for a CPU.
    waiting: FxHashMap<u32, Option<WaitReason>>,
}

impl Switches {
    /// A CPU changes from one thread to another. Returns what the thread that comes has waited for, which is `None`
    /// for a CPU.
    pub(super) fn switch(&mut self, switch: &ContextSwitch, cpu: u16) -> Option<WaitReason> {
        self.running.insert(cpu, switch.new_thread);
        let waits = !switch.old_state.can_run();
        self.waiting.insert(switch.old_thread, waits.then(|| reason(switch.old_wait_reason)));
        // The wait of a thread that was not seen to leave a CPU can be for anything.
        self.waiting.remove(&switch.new_thread).unwrap_or(Some(WaitReason::Other))
    }

    /// A thread begins, and waits for its first CPU.
    pub(super) fn begin(&mut self, thread: u32) {
        self.waiting.insert(thread, None);
    }

    /// The thread that a CPU runs, if it is known.
    pub(super) fn running(&self, cpu: u16) -> Option<u32> {
        self.running.get(&cpu).copied()
    }

    /// Forgets a thread that has ended, whose number may be another one's later.
    pub(super) fn forget(&mut self, thread: u32) {
        self.waiting.remove(&thread);
    }
}

/// What a thread waits for, by the number that the kernel has for it (`KWAIT_REASON` of wdm.h; the documentation
/// of `CSwitch` has the older ones).
fn reason(reason: kernel::WaitReason) -> WaitReason {
    match reason.0 {
        // KeyedEvent (critical sections), Resource, PushLock, Mutex, FastMutex, GuardedMutex, Rundown.
        21 | 27..=29 | 34..=36 => WaitReason::Lock,
        // AlertByThreadId: slim locks, condition variables, `WaitOnAddress`. Functions tell them apart.
        37 => WaitReason::Park,
        // DelayExecution.
        4 | 11 => WaitReason::Sleep,
        // FreePage, PageIn, VirtualMemory, PageOut, ProcessInSwap, PhysicalFault.
        1 | 2 | 8 | 9 | 18 | 19 | 23 | 39 => WaitReason::Page,
        // UserRequest (`WaitForSingleObject` and its like), Queue (completion ports).
        6 | 13 | 15 => WaitReason::Events,
        _ => WaitReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_etw::kernel::ThreadState;

    fn switch(old_thread: u32, (wait_reason, state): (u8, u8), new_thread: u32) -> ContextSwitch {
        let old_wait_reason = kernel::WaitReason(wait_reason);
        ContextSwitch { new_thread, old_thread, old_wait_reason, old_state: ThreadState(state) }
    }

    #[test]
    fn a_thread_comes_back_with_its_reason() {
        const WAITS: u8 = 5;
        const IS_READY: u8 = 1;
        let mut switches = Switches::default();
        let reasons = [
            switches.switch(&switch(7, (4, WAITS), 8), 0),
            switches.switch(&switch(8, (32, IS_READY), 7), 0),
            switches.switch(&switch(7, (37, WAITS), 8), 1),
            switches.switch(&switch(8, (0, WAITS), 7), 1),
        ];
        let [sleep, park] = [WaitReason::Sleep, WaitReason::Park];
        assert_eq!(reasons, [Some(WaitReason::Other), Some(sleep), None, Some(park)]);
        assert_eq!([0, 1, 2].map(|cpu| switches.running(cpu)), [Some(7), Some(7), None]);
        switches.forget(8);
        switches.begin(9);
        assert_eq!(switches.switch(&switch(7, (4, WAITS), 8), 0), Some(WaitReason::Other));
        assert_eq!(switches.switch(&switch(8, (4, WAITS), 9), 0), None);
    }
}
