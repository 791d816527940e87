//! Samples, switches and wakeups that wait for their stacks. A stack comes after the event that it belongs to, and
//! names it by time and thread. The kernel's part comes at once. The user's part comes when the thread returns to
//! user code. Then it belongs to all events of the thread since it has entered the kernel.

use super::images::is_kernel;
use crate::event::{
    Event, EventKind, Pid, Sample, SampleState, Tid, Timestamp, UserStack, WaitReason, Waiting, Wakeup,
};
use nyquist_etw::PointerSize;
use nyquist_object::Avma;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most events that wait.
const MAX_WAITING_EVENTS: usize = 1 << 18;

/// An event that waits for its stack.
#[derive(Debug)]
pub(super) struct HeldEvent {
    pub(super) time: Timestamp,
    pub(super) cpu: u32,
    /// The process and the thread under its shown number, if they are known.
    pub(super) task: Option<(Pid, Tid)>,
    pub(super) kind: HeldKind,
    kernel: Vec<Avma>,
    user: Option<Arc<[Avma]>>,
}

/// What waits for its stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum HeldKind {
    /// A sample.
    Sample {
        /// The instruction pointer.
        address: u64,
        pointer_size: PointerSize,
        period_ns: u64,
    },
    /// A thread came to a CPU. Its stack is that of its wait.
    SwitchIn {
        /// What it has waited for, if it was for anything but a CPU.
        reason: Option<WaitReason>,
    },
    /// The thread made another one ready to run.
    Wakeup { woken: Tid, in_interrupt: bool },
}

impl HeldEvent {
    /// An event without a stack so far.
    pub(super) fn new(time: Timestamp, cpu: u16, task: Option<(Pid, Tid)>, kind: HeldKind) -> Self {
        Self { time, cpu: cpu.into(), task, kind, kernel: Vec::new(), user: None }
    }

    fn is_in_kernel(&self) -> bool {
        match self.kind {
            HeldKind::Sample { address, pointer_size, .. } => is_kernel(address, pointer_size),
            HeldKind::SwitchIn { .. } | HeldKind::Wakeup { .. } => true,
        }
    }

    fn has_stack(&self) -> bool {
        !self.kernel.is_empty() || self.user.is_some()
    }

    /// Whether it happened since the thread has entered the kernel. A switch whose kernel part was lost, or is not
    /// recorded, may be older.
    fn is_of_this_entry(&self) -> bool {
        self.is_in_kernel() && (self.is_sample() || !self.kernel.is_empty())
    }

    fn is_sample(&self) -> bool {
        matches!(self.kind, HeldKind::Sample { .. })
    }

    /// Appends what it becomes. Returns whether its process is known; otherwise it becomes nothing.
    pub(super) fn append(self, out: &mut Vec<Event>) -> bool {
        let Some((pid, tid)) = self.task else { return false };
        let (in_kernel, has_stack) = (self.is_in_kernel(), self.has_stack());
        let Self { time, cpu, kind, kernel, user, .. } = self;
        let mut sample = Sample {
            pid,
            tid,
            in_kernel,
            state: SampleState::Clocked,
            period_ns: 0,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: kernel,
            user: user.map_or(UserStack::None, UserStack::Shared),
        };
        let mut push = |kind| out.push(Event { time, cpu: Some(cpu), kind });
        match kind {
            HeldKind::Sample { address, period_ns, .. } => {
                sample.period_ns = period_ns;
                if in_kernel && sample.kernel_stack.is_empty() {
                    sample.kernel_stack = vec![Avma(address)];
                } else if !in_kernel && sample.user == UserStack::None {
                    sample.user = UserStack::Walked(vec![Avma(address)]);
                }
                push(EventKind::Sample(sample));
            }
            HeldKind::SwitchIn { reason } => {
                if has_stack || reason.is_some() {
                    // Each wait is known by itself, and stands for no others.
                    let checked_before_ns = 0;
                    let wait = Waiting { sample, reason, holder: None, checked_before_ns, object: None };
                    push(EventKind::Waiting(Box::new(wait)));
                }
                push(EventKind::SwitchIn { tid });
            }
            HeldKind::Wakeup { woken, in_interrupt } => {
                push(EventKind::Wakeup(Box::new(Wakeup { sample, woken, in_interrupt })));
            }
        }
        true
    }
}

/// The events that wait, by their times in units of the trace's clock, and their threads.
#[derive(Debug, Default)]
pub(super) struct HeldEvents {
    by_time: BTreeMap<(u64, u32), HeldEvent>,
    /// The same by threads and times.
    of_thread: BTreeSet<(u32, u64)>,
    /// The samples that had a stack, or none, when they were released.
    pub(super) with_stack: u64,
    pub(super) without_stack: u64,
    /// The samples of unknown processes.
    pub(super) of_nobody: u64,
}

/// A stack, and the event that it names.
pub(super) struct NamedStack {
    pub(super) time: u64,
    pub(super) thread: u32,
    /// Its process, with the shown number of the thread.
    pub(super) task: (Pid, Tid),
    pub(super) addresses: Arc<[Avma]>,
    pub(super) pointer_size: PointerSize,
    /// Whether the process has no user code.
    pub(super) is_of_system: bool,
}

impl HeldEvents {
    /// Adds an event. If the thread runs user code, nothing more can come for its earlier events.
    pub(super) fn add(&mut self, time: u64, thread: u32, held: HeldEvent, out: &mut Vec<Event>) {
        if !held.is_in_kernel() {
            self.release_thread(thread, out);
        }
        self.of_thread.insert((thread, time));
        if let Some(same) = self.by_time.insert((time, thread), held) {
            self.emit(same, out);
        }
        while self.by_time.len() > MAX_WAITING_EVENTS {
            self.release_first(out);
        }
    }

    /// Adds a stack to the events that it belongs to.
    pub(super) fn complete(&mut self, stack: &NamedStack, out: &mut Vec<Event>) {
        let first_of_user =
            stack.addresses.iter().position(|address| !is_kernel(address.0, stack.pointer_size));
        let (kernel, user) = stack.addresses.split_at(first_of_user.unwrap_or(stack.addresses.len()));
        let target = self.by_time.get_mut(&(stack.time, stack.thread));
        if let Some(target) = target {
            target.task.get_or_insert(stack.task);
            if !kernel.is_empty() {
                target.kernel = kernel.to_vec();
            }
        }
        if user.is_empty() {
            if stack.is_of_system {
                self.release((stack.time, stack.thread), out);
            }
        } else if kernel.is_empty() {
            self.leave_kernel(stack, out);
        } else {
            self.give_user((stack.time, stack.thread), &user.into(), out);
        }
    }

    /// A thread has left the kernel with this user stack, which all its events since its entry share.
    fn leave_kernel(&mut self, stack: &NamedStack, out: &mut Vec<Event>) {
        for (thread, time) in self.keys_of(stack.thread) {
            let key = (time, thread);
            let Some(held) = self.by_time.get(&key) else { continue };
            if time == stack.time || held.is_of_this_entry() {
                self.give_user(key, &stack.addresses, out);
            } else if !held.is_sample() {
                self.release(key, out);
            }
        }
    }

    fn keys_of(&self, thread: u32) -> Vec<(u32, u64)> {
        self.of_thread.range((thread, 0)..=(thread, u64::MAX)).copied().collect()
    }

    fn give_user(&mut self, key: (u64, u32), user: &Arc<[Avma]>, out: &mut Vec<Event>) {
        if let Some(held) = self.by_time.get_mut(&key) {
            held.user = Some(Arc::clone(user));
        }
        self.release(key, out);
    }

    /// Releases all events of a thread, for which no more stacks come.
    pub(super) fn release_thread(&mut self, thread: u32, out: &mut Vec<Event>) {
        for (thread, time) in self.keys_of(thread) {
            self.release((time, thread), out);
        }
    }

    /// Releases all events from before a time.
    pub(super) fn release_before(&mut self, time: Timestamp, out: &mut Vec<Event>) {
        while self.first().is_some_and(|first| first < time) {
            self.release_first(out);
        }
    }

    /// The time of the oldest event that waits.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.by_time.first_key_value().map(|(_, held)| held.time)
    }

    fn release_first(&mut self, out: &mut Vec<Event>) {
        if let Some(&key) = self.by_time.keys().next() {
            self.release(key, out);
        }
    }

    fn release(&mut self, key: (u64, u32), out: &mut Vec<Event>) {
        let Some(held) = self.by_time.remove(&key) else { return };
        self.of_thread.remove(&(key.1, key.0));
        self.emit(held, out);
    }

    fn emit(&mut self, held: HeldEvent, out: &mut Vec<Event>) {
        let (is_sample, has_stack) = (held.is_sample(), held.has_stack());
        let is_known = held.append(out);
        if is_sample {
            let count = match (is_known, has_stack) {
                (false, _) => &mut self.of_nobody,
                (true, true) => &mut self.with_stack,
                (true, false) => &mut self.without_stack,
            };
            *count += 1;
        }
    }
}
