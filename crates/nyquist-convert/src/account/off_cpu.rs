//! The threads that are off the CPU, or are about to leave it.

use super::off_cpu_interval::{Cause, LeavingStack, Look, OffCpuInterval, Waker};
use super::wait_functions::WaitFunctions;
use crate::event::{Pid, Tid, Timestamp, WaitReason};
use nyquist_object::Avma;
use nyquist_profile::StackId;
use nyquist_symbols::KernelSymbols;
use rustc_hash::{FxHashMap, FxHashSet};

/// The longest time between the record of a switch's stack and the switch itself, in nanoseconds.
const MAX_SWITCH_NS: u64 = 1_000_000;

/// All times off the CPU that have not ended.
#[derive(Debug)]
pub(crate) struct OffCpuIntervals {
    waiting: FxHashMap<Tid, OffCpuInterval>,
    /// The threads that are about to leave their CPU.
    leaving: FxHashMap<Tid, LeavingStack>,
    /// The threads that were seen on a CPU, or were seen to leave one.
    known: FxHashSet<Tid>,
    /// The reasons of waits.
    functions: WaitFunctions,
}

impl OffCpuIntervals {
    /// No times off the CPU. The reasons of waits are found by the functions of this kernel.
    pub(crate) fn new(kernel: Option<KernelSymbols>) -> Self {
        Self {
            waiting: FxHashMap::default(),
            leaving: FxHashMap::default(),
            known: FxHashSet::default(),
            functions: WaitFunctions::new(kernel),
        }
    }

    /// A thread is about to leave its CPU at a stack. `argument` is the first one of its system call.
    pub(crate) fn note_leaving(
        &mut self,
        (tid, at): (Tid, Timestamp),
        stack: Option<StackId>,
        argument: Option<u64>,
        kernel_stack: Vec<Avma>,
    ) {
        let reason = self.functions.reason(&kernel_stack);
        let futex =
            argument.filter(|_| reason == WaitReason::Futex && self.functions.take_futex(&kernel_stack));
        self.leaving.insert(tid, LeavingStack { at, reason, futex, stack, kernel_stack });
    }

    /// The stack of a thread that leaves its CPU now, if it was recorded.
    pub(crate) fn take_leaving(&mut self, tid: Tid, now: Timestamp) -> Option<LeavingStack> {
        let leaving = self.leaving.remove(&tid)?;
        (now.0.saturating_sub(leaving.at.0) <= MAX_SWITCH_NS).then_some(leaving)
    }

    /// A thread has left its CPU. `leaving` says where and why it waits, if the cause does not.
    pub(crate) fn begin(
        &mut self,
        (pid, tid): (Pid, Tid),
        (now, cause): (Timestamp, Cause),
        leaving: Option<LeavingStack>,
    ) {
        self.put(tid, OffCpuInterval::new(pid, now, cause).left_at(leaving));
    }

    /// A thread has left its CPU at a stack, which shows why.
    pub(crate) fn begin_at_stack(&mut self, (pid, tid): (Pid, Tid), now: Timestamp, stack: Option<StackId>) {
        let interval = OffCpuInterval { stack, ..OffCpuInterval::new(pid, now, Cause::AtStack) };
        self.put(tid, interval);
    }

    fn put(&mut self, tid: Tid, interval: OffCpuInterval) {
        self.known.insert(tid);
        self.waiting.insert(tid, interval);
    }

    /// Whether a thread was off the CPU at its last event. If it was never seen on a CPU, it has been off the
    /// CPU since `since`.
    pub(crate) fn is_off(&mut self, (pid, tid): (Pid, Tid), since: Timestamp) -> bool {
        if self.known.insert(tid) {
            self.waiting.insert(tid, OffCpuInterval::new(pid, since, Cause::NotSeen));
        }
        self.waiting.contains_key(&tid)
    }

    /// Takes the kernel's part of the stack at which a thread has left its CPU. It is empty if the stack was
    /// not recorded.
    pub(crate) fn take_kernel_stack(&mut self, tid: Tid) -> Vec<Avma> {
        let interval = self.waiting.get_mut(&tid);
        interval.map(|interval| std::mem::take(&mut interval.kernel_stack)).unwrap_or_default()
    }

    /// A thread was found waiting.
    pub(crate) fn see(&mut self, tid: Tid, look: Look) {
        if let Some(interval) = self.waiting.get_mut(&tid) {
            interval.see(look);
        }
    }

    /// Whether a thread has been off the CPU for so long that this is marked.
    pub(crate) fn is_long(&self, tid: Tid, now: Timestamp) -> bool {
        self.waiting.get(&tid).is_some_and(|interval| interval.is_long(now))
    }

    /// A thread was made ready to run.
    pub(crate) fn wake(&mut self, tid: Tid, waker: Waker) {
        if let Some(interval) = self.waiting.get_mut(&tid) {
            interval.waker = Some(waker);
        }
    }

    /// A thread is on a CPU.
    pub(crate) fn end(&mut self, tid: Tid) -> Option<OffCpuInterval> {
        self.waiting.remove(&tid)
    }

    /// Notes that a thread came to a CPU, which may be its first event.
    pub(crate) fn arrive(&mut self, tid: Tid) {
        self.known.insert(tid);
    }

    /// Forgets a thread that has ended, because a later thread with its number is another one.
    pub(crate) fn forget(&mut self, tid: Tid) {
        self.known.remove(&tid);
        self.leaving.remove(&tid);
    }

    /// Forgets all threads: where they are is not known from now on.
    pub(crate) fn forget_all(&mut self) {
        self.waiting.clear();
        self.leaving.clear();
        self.known.clear();
    }

    /// All, in the order of threads.
    pub(crate) fn all(&self) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits: Vec<_> = self.waiting.iter().map(|(tid, wait)| (*tid, wait.clone())).collect();
        waits.sort_unstable_by_key(|(tid, _)| *tid);
        waits
    }

    /// All as if they ended now, in the order of threads. They continue from now on. Those that have only
    /// just begun are left out.
    pub(crate) fn split(&mut self, now: Timestamp) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits = self.all();
        waits.retain(|(_, wait)| wait.length(now) > 0 && !wait.may_be_seen(now));
        for (tid, wait) in &waits {
            self.put(*tid, OffCpuInterval { since: now, ..wait.clone() });
        }
        waits
    }

    /// Begins intervals again, at `from` at the earliest. All stacks are forgotten, because stack ids refer
    /// to tables that are rebuilt.
    pub(crate) fn restart(&mut self, intervals: Vec<(Tid, OffCpuInterval)>, from: Timestamp) {
        self.leaving.clear();
        for (tid, interval) in intervals {
            let since = interval.since.max(from);
            self.put(tid, OffCpuInterval { since, stack: None, waker: None, ..interval });
        }
    }

    /// Ends all, in the order of threads.
    pub(crate) fn end_all(&mut self) -> Vec<(Tid, OffCpuInterval)> {
        let mut waits: Vec<_> = self.waiting.drain().collect();
        waits.sort_unstable_by_key(|(tid, _)| *tid);
        waits
    }
}
