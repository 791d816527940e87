//! The names of events, as perf has them, and what the kernel knows each by:
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
//! Behind each can stand `/period=1000,name=x/` and modifiers, as `:u`. Several are separated by commas.

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

/// An event: what is counted, as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name: as it was typed, or by the term `name`.
    pub name: String,
    /// What the kernel is asked to count. Where there are several, the event's count is their sum.
    pub selectors: Vec<Selector>,
    /// What of it counts.
    pub modifiers: Modifiers,
    /// How often it is sampled, where the text says so.
    pub interval: Option<Interval>,
    /// What a count is multiplied by to be in `unit`.
    pub scale: f64,
    /// What is counted, where it is not times that something happened: `Joules`.
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

/// What the kernel knows something that it can count by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`, `config1` and `config2`.
    pub config: [u64; 3],
    /// The place in a file, of a probe.
    pub probe: Option<Probe>,
    /// The only CPUs on which the counting unit counts, where it says so.
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
    /// Once in so many.
    Period(u64),
    /// So many times a second.
    Frequency(u64),
}
