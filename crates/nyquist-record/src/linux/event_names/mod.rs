//! The names of events, as in perf, and their values for the kernel:
//!
//! | text | what it names |
//! |---|---|
//! | `cycles`, `page-faults`, `L1-dcache-load-misses` | an event that has a name on every machine |
//! | `r1a8` | an event of the CPU by its number |
//! | `cpu/event=0x3c,umask=1/`, `msr/tsc/` | an event of a counting unit (`/sys/bus/event_source/devices`) |
//! | `sched:sched_switch`, `sched:*` | tracepoints |
//! | `libc:malloc`, `./app:run%return`, `./app:run+8` | a function of a program or library (uprobe) |
//! | `libc:libc:setjmp` | a probe that a program was built with (USDT) |
//!
//! Each can be followed by `/period=1000,name=x/` and by modifiers such as `:u`. Several are separated by
//! commas.

mod closest;
mod error;
mod event;
mod function_name;
mod function_symbols;
mod generic;
mod instruction_check;
mod listing;
mod modifiers;
mod number;
mod place_error;
mod probe;
mod probed_file;
mod read;
mod selector;
mod sources;
mod terms;
#[cfg(test)]
mod tests;
mod user_probes;

pub use closest::closest;
pub use error::EventNameError;
pub use event::{RequestedEvent, SampleInterval};
pub use generic::{GenericEvent, HARDWARE, SOFTWARE};
pub use listing::{EventGroup, ListedEvent, listed};
pub use modifiers::Modifiers;
pub use probe::Probe;
pub use probed_file::ProbedFile;
pub use read::parse;
pub use selector::Selector;
pub use sources::{EventSources, UnitEvent};
pub use user_probes::{UserProbe, user_probes_in_notes};
