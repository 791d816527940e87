//! Samples that wait for their stacks. A stack comes after the sample that it belongs to, and names it by time and
//! thread. The kernel's part comes at once. The user's part comes when the thread returns to user code. Then it
//! belongs to all samples of the thread since it has entered the kernel.

use super::images::is_kernel;
use crate::event::{Event, EventKind, Pid, Sample, SampleState, Tid, Timestamp, UserStack};
use nyquist_etw::PointerSize;
use nyquist_object::Avma;
use std::collections::{BTreeMap, BTreeSet};

/// The most samples that wait.
const MOST: usize = 1 << 18;

/// A sample that waits for its stack.
#[derive(Debug)]
pub(super) struct HeldSample {
    pub(super) time: Timestamp,
    pub(super) cpu: u32,
    /// The process and the thread under its shown number, if they are known.
    pub(super) task: Option<(Pid, Tid)>,
    /// The instruction pointer.
    pub(super) address: u64,
    pub(super) pointer_size: PointerSize,
    pub(super) period_ns: u64,
    pub(super) kernel: Vec<Avma>,
    pub(super) user: Vec<Avma>,
}

impl HeldSample {
    fn is_in_kernel(&self) -> bool {
        is_kernel(self.address, self.pointer_size)
    }

    fn has_stack(&self) -> bool {
        !self.kernel.is_empty() || !self.user.is_empty()
    }

    /// The event of the sample. `None` if its process is not known.
    fn event(self) -> Option<Event> {
        let (pid, tid) = self.task?;
        let in_kernel = self.is_in_kernel();
        let alone = vec![Avma(self.address)];
        let Self { time, cpu, mut kernel, mut user, .. } = self;
        if in_kernel && kernel.is_empty() {
            kernel = alone;
        } else if !in_kernel && user.is_empty() {
            user = alone;
        }
        let user = if user.is_empty() { UserStack::None } else { UserStack::Walked(user) };
        let sample = Sample {
            pid,
            tid,
            in_kernel,
            state: SampleState::Clocked,
            period_ns: self.period_ns,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: kernel,
            user,
        };
        Some(Event { time, cpu: Some(cpu), kind: EventKind::Sample(sample) })
    }
}

/// The samples that wait, by their times in units of the trace's clock, and their threads.
#[derive(Debug, Default)]
pub(super) struct HeldSamples {
    by_time: BTreeMap<(u64, u32), HeldSample>,
    /// The same by threads and times.
    of_thread: BTreeSet<(u32, u64)>,
    /// The samples that had a stack, or none, when they were released.
    pub(super) with_stack: u64,
    pub(super) without_stack: u64,
    /// The samples of unknown processes.
    pub(super) of_nobody: u64,
}

/// A stack, and the sample that it names.
pub(super) struct NamedStack<'a> {
    pub(super) time: u64,
    pub(super) thread: u32,
    /// Its process, with the shown number of the thread.
    pub(super) task: (Pid, Tid),
    pub(super) addresses: &'a [u64],
    pub(super) pointer_size: PointerSize,
    /// Whether the process has no user code.
    pub(super) is_of_system: bool,
}

impl HeldSamples {
    /// Adds a sample. If the thread runs user code, nothing more can come for its earlier samples.
    pub(super) fn add(&mut self, time: u64, thread: u32, held: HeldSample, out: &mut Vec<Event>) {
        if !held.is_in_kernel() {
            self.release_thread(thread, out);
        }
        self.of_thread.insert((thread, time));
        if let Some(same) = self.by_time.insert((time, thread), held) {
            self.emit(same, out);
        }
        while self.by_time.len() > MOST {
            self.release_first(out);
        }
    }

    /// Adds a stack to the samples that it belongs to.
    pub(super) fn complete(&mut self, stack: &NamedStack<'_>, out: &mut Vec<Event>) {
        let first_of_user =
            stack.addresses.iter().position(|address| !is_kernel(*address, stack.pointer_size));
        let (kernel, user) = stack.addresses.split_at(first_of_user.unwrap_or(stack.addresses.len()));
        let target = self.by_time.get_mut(&(stack.time, stack.thread));
        if let Some(target) = target {
            target.task.get_or_insert(stack.task);
            target.kernel.extend(kernel.iter().map(|address| Avma(*address)));
        }
        if user.is_empty() {
            if stack.is_of_system {
                self.release((stack.time, stack.thread), out);
            }
        } else if kernel.is_empty() {
            self.leave_kernel(stack, user, out);
        } else {
            self.give_user((stack.time, stack.thread), user, out);
        }
    }

    /// A thread has left the kernel with this user stack.
    fn leave_kernel(&mut self, stack: &NamedStack<'_>, user: &[u64], out: &mut Vec<Event>) {
        for (thread, time) in self.keys_of(stack.thread) {
            let key = (time, thread);
            let in_kernel = self.by_time.get(&key).is_some_and(HeldSample::is_in_kernel);
            if in_kernel || time == stack.time {
                self.give_user(key, user, out);
            }
        }
    }

    fn keys_of(&self, thread: u32) -> Vec<(u32, u64)> {
        self.of_thread.range((thread, 0)..=(thread, u64::MAX)).copied().collect()
    }

    fn give_user(&mut self, key: (u64, u32), user: &[u64], out: &mut Vec<Event>) {
        if let Some(held) = self.by_time.get_mut(&key) {
            held.user = user.iter().map(|address| Avma(*address)).collect();
        }
        self.release(key, out);
    }

    /// Releases all samples of a thread, for which no more stacks come.
    pub(super) fn release_thread(&mut self, thread: u32, out: &mut Vec<Event>) {
        for (thread, time) in self.keys_of(thread) {
            self.release((time, thread), out);
        }
    }

    /// Releases all samples from before a time.
    pub(super) fn release_before(&mut self, time: Timestamp, out: &mut Vec<Event>) {
        while self.first().is_some_and(|first| first < time) {
            self.release_first(out);
        }
    }

    /// The time of the oldest sample that waits.
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

    fn emit(&mut self, held: HeldSample, out: &mut Vec<Event>) {
        let has_stack = held.has_stack();
        match held.event() {
            Some(event) => {
                out.push(event);
                let count = if has_stack { &mut self.with_stack } else { &mut self.without_stack };
                *count += 1;
            }
            None => self.of_nobody += 1,
        }
    }
}
