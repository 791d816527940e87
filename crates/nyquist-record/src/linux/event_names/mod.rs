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
mod function_name;
mod generic;
mod listing;
mod modifiers;
mod probe;
mod read;
mod sources;
mod terms;
#[cfg(test)]
mod tests;

use perf_event_open_sys::bindings::PERF_TYPE_TRACEPOINT;

pub use closest::closest;
pub use error::EventNameError;
pub use generic::{Generic, HARDWARE, SOFTWARE};
pub use listing::{Group, Listed, listed};
pub use modifiers::Modifiers;
pub use probe::{Probe, UserProbe, user_probes, user_probes_in_notes};
pub use read::parse;
pub use sources::{EventSources, UnitEvent};

/// An event to count, as the user requested it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name: as typed, or from the term `name`.
    pub name: String,
    /// The kernel's events to count. If there are several, the event's count is their sum.
    pub selectors: Vec<Selector>,
    /// The modifiers, which restrict what is counted.
    pub modifiers: Modifiers,
    /// How often it is sampled, if the text contains that.
    pub interval: Option<Interval>,
    /// The factor that converts a count to `unit`.
    pub scale: f64,
    /// The unit of the count, if it is not a number of occurrences: `Joules`.
    pub unit: Option<String>,
}

impl Event {
    /// Whether it is a tracepoint of the kernel.
    pub fn is_tracepoint(&self) -> bool {
        self.selectors.iter().any(|selector| selector.kind == PERF_TYPE_TRACEPOINT)
    }

    /// Whether it is a place in a program (an uprobe, or a USDT probe).
    pub fn is_probe(&self) -> bool {
        self.selectors.iter().any(|selector| selector.probe.is_some())
    }
}

/// The kernel's identification of something that it can count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`, `config1` and `config2`.
    pub config: [u64; 3],
    /// The place in a file, for a probe.
    pub probe: Option<Probe>,
    /// The only CPUs on which the counting unit counts, if it is limited to some.
    pub cpus: Option<Vec<u32>>,
}

impl Selector {
    fn new(kind: u32, config: u64) -> Self {
        Self { kind, config: [config, 0, 0], probe: None, cpus: None }
    }
}

/// When an event is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Once in this many occurrences.
    Period(u64),
    /// This many times a second.
    Frequency(u64),
}
