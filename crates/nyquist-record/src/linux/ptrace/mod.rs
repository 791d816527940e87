//! Sampling with ptrace(2), where `perf_event_open` is refused: one thread traces all threads of processes and of their
//! children, and looks at each of them by the wall clock.
//!
//! A thread that waits is never stopped, for that would end its system call: `/proc` says where it waits, and its stack
//! is read from outside. A thread that runs is held for as long as it takes to copy its registers and its stack.

mod life;
mod looking;
mod maps;
mod open;
mod out;
mod outcome;
mod pace;
pub(super) mod privileges;
mod recording;
pub(super) mod restart;
mod seize;
pub(super) mod stop;
mod subject;
mod suspend;
mod task;
mod tracer;

pub use open::{Circumstances, Ptrace};
pub use outcome::{Notice, OpenError, Outcome, may_trace};
pub use pace::{BudgetSummary, HoldSummary};
pub use recording::{Recording, Summary};
pub use subject::Subject;
