//! Sampling with ptrace(2), if `perf_event_open` is refused: one thread traces all threads of processes and
//! of their children, and samples each of them by the wall clock.
//!
//! A waiting thread is never stopped, because that would end its system call: `/proc` contains its place, and
//! its stack is read from outside. A running thread is stopped for the time needed to copy its registers and
//! its stack.

mod attaching;
mod interrupted_stack;
mod job_control;
mod life;
mod maps;
mod open;
mod outcome;
pub(super) mod privileges;
mod recording;
pub(super) mod restart;
mod sampling;
mod seize;
pub(super) mod stop;
mod stop_polling;
mod subject;
mod tracee;
mod tracer;

pub use open::{Ptrace, PtraceContext};
pub use outcome::{Notice, OpenError, PtraceOutcome, may_trace};
pub use recording::{PtraceRecording, PtraceSummary};
pub use subject::TracedTarget;

pub use crate::pace::{BudgetSummary, HoldSummary};
