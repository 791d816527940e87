//! One observation of a thread, with its stack.

use super::ids::{Pid, Tid};
use super::pre_unwound::PreUnwound;
use super::registers::Registers;
use super::wait_reason::WaitReason;
use bytes::Bytes;
use nyquist_object::Avma;
use std::sync::Arc;

/// One observation of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// Whether the thread was in the kernel when it was observed.
    pub in_kernel: bool,
    /// The thread's state, which determines what the sample stands for.
    pub state: SampleState,
    /// The CPU time that this sample stands for, in nanoseconds, if the thread's own clock has triggered it.
    /// If the profile counts events, it is the number of events.
    pub period_ns: u64,
    /// The CPU time that the thread has used since the counter was opened, in nanoseconds, user and kernel,
    /// for sources that count it. If [`Event::cpu`](super::Event::cpu) is known, it is the thread's CPU time *on that
    /// CPU*, and each CPU counts from 0 for every thread. So the thread's CPU time since a former sample is the
    /// difference to its last value on the same CPU. Its whole time is the sum over the CPUs.
    pub cpu_time_ns: Option<u64>,
    /// Whether `cpu_time_ns` only counts since another event has taken over, and from 0 again on each CPU.
    pub counts_anew: bool,
    /// The kernel's part of the stack, innermost first: the instruction pointer, then return addresses. Empty
    /// if the thread was in user code, or if the source may not read the kernel's stack.
    pub kernel_stack: Vec<Avma>,
    /// The user's part of the stack.
    pub user: UserStack,
}

#[cfg(test)]
impl Sample {
    /// A sample of a process's first thread in user code, which the thread's clock has triggered. It stands
    /// for a millisecond.
    pub(crate) fn in_user_code(pid: Pid, user: UserStack) -> Self {
        Self {
            pid,
            tid: Tid(pid.0),
            in_kernel: false,
            state: SampleState::Clocked,
            period_ns: 1_000_000,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: Vec::new(),
            user,
        }
    }
}

/// The state of a thread when it was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleState {
    /// It ran, and its own clock of CPU time has triggered the sample.
    #[default]
    Clocked,
    /// It ran, and a counter of CPU cycles has triggered the sample. The sample's period is not used, but is
    /// computed from the cycles.
    Counted {
        /// The cycles since the counter's last sample.
        cycles: u64,
    },
    /// The wall clock triggered the sample, and the thread ran.
    Running {
        /// How long it has waited, for any reason, since the last look at it, in nanoseconds.
        waited_ns: u64,
    },
    /// The wall clock triggered the sample. The thread has not run since the last look, because other threads
    /// had the CPUs.
    Runnable {
        /// How long it has waited since the last look at it, in nanoseconds.
        waited_ns: u64,
    },
    /// The wall clock triggered the sample, and the thread waited for something.
    Waiting {
        /// How long it has waited since the last look at it, in nanoseconds.
        waited_ns: u64,
        /// The kind of object that it waited for, if that is known.
        reason: Option<WaitReason>,
    },
}

/// The user's part of a stack: walked already, or the data to walk it.
#[derive(Clone, Debug, PartialEq)]
pub enum UserStack {
    /// No user stack: a kernel thread, or a thread whose memory was gone already.
    None,
    /// Walked by the source: the instruction pointer, then return addresses.
    Walked(Vec<Avma>),
    /// The same, shared by the samples of a thread that has not left the kernel between them.
    Shared(Arc<[Avma]>),
    /// Walked by the source through frame pointers. If code uses the register for something else, the chain
    /// leads to arbitrary memory. So the stack ends before the first address outside of code.
    FramePointers(Vec<Avma>),
    /// It cannot be unwound. This is its name.
    Named(&'static str),
    /// The registers at the entry to the kernel, and a copy of the stack's innermost bytes.
    Copied {
        /// The general registers.
        registers: Box<Registers>,
        /// The bytes from the stack pointer upwards.
        stack: Bytes,
        /// Whether the copy ends because its limit was reached, and not because the stack did.
        limited: bool,
    },
    /// Such a stack, walked ahead of the converter.
    PreUnwound(Box<PreUnwound>),
}

impl UserStack {
    /// The first argument of the system call that the thread is in, if it is known.
    pub(crate) fn call_argument(&self) -> Option<u64> {
        match self {
            Self::Copied { registers, .. } => registers.call_argument(),
            _ => None,
        }
    }
}
