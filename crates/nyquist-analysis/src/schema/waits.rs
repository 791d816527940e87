//! Rows of what threads wait for.

use std::borrow::Cow;

use serde::Serialize;

use super::Rows;
use crate::query::wait_places::{WaitPlace, wait_places};
use crate::query::waits::WaitedFor;

/// The number of places, and of stacks, of a row.
const PLACES: usize = 5;

/// A thing that threads of a process waited for. Waits of 0.1 ms and more are seen. As a
/// plain user, some are seen by chance, and `total_ns` includes the others of their threads
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitRow<'a> {
    /// What kind of thing: `lock`, `file`, `idle: Tokio`, `stopped`, ...
    pub reason: &'a str,
    /// Which one: a futex's address, a file's path, `socket:[123]`; or null
    pub object: Option<&'a str>,
    /// The name of the process
    pub process: &'a str,
    /// How many waits there were of those that were seen
    pub count: u64,
    /// How long they took, with the time of those that were not seen
    pub total_ns: u64,
    /// The part of `total_ns` in waits that were not seen. Where it would cost too much to see each wait, some are
    /// seen by chance and stand for the others of their threads
    pub unseen_ns: u64,
    /// The duration that 50 % of them do not exceed
    pub p50_ns: u64,
    /// The duration that 90 % of them do not exceed
    pub p90_ns: u64,
    /// The duration that 99 % of them do not exceed
    pub p99_ns: u64,
    /// The longest duration
    pub max_ns: u64,
    /// Threads that held it, and for how long others waited meanwhile
    pub held_by: Vec<WaitThread<'a>>,
    /// Threads that ended the waits, and their durations; `an interrupt` for timers and devices. Root alone has them
    pub woken_by: Vec<WaitThread<'a>>,
    /// The functions in which threads waited, outside of the kernel and of the language's libraries, and for how long
    pub places: Vec<WaitPlaceRow<'a>>,
    /// Where threads waited, and for how long; `query` has none
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<WaitStack<'a>>,
}

/// A thread that held something, or ended waits
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitThread<'a> {
    /// Its name
    pub thread: &'a str,
    /// The time that others waited
    pub total_ns: u64,
}

/// A function in which threads waited
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitPlaceRow<'a> {
    /// Its handle
    pub handle: String,
    /// Its name
    pub function: Cow<'a, str>,
    /// The time that threads waited there
    pub total_ns: u64,
}

/// A stack in which threads waited
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitStack<'a> {
    /// The time that threads waited there
    pub total_ns: u64,
    /// Its functions, the innermost first
    pub frames: Vec<Cow<'a, str>>,
}

impl<'a> Rows<'a> {
    /// What threads waited for, without the stacks.
    pub fn wait(&self, wait: &WaitedFor<'a>) -> WaitRow<'a> {
        let threads = |threads: &[(&'a str, u64)]| -> Vec<_> {
            threads.iter().map(|&(thread, total_ns)| WaitThread { thread, total_ns }).collect()
        };
        let places = wait_places(self.profile, wait);
        WaitRow {
            reason: wait.reason,
            object: wait.object,
            process: wait.process,
            count: wait.durations.count,
            total_ns: wait.durations.total_ns,
            unseen_ns: wait.unseen_ns,
            p50_ns: wait.durations.p50_ns,
            p90_ns: wait.durations.p90_ns,
            p99_ns: wait.durations.p99_ns,
            max_ns: wait.durations.max_ns,
            held_by: threads(&wait.holders),
            woken_by: threads(&wait.wakers),
            places: places.iter().take(PLACES).map(|place| self.wait_place(place)).collect(),
            stacks: Vec::new(),
        }
    }

    /// What threads waited for, with the stacks.
    pub fn wait_with_stacks(&self, wait: &WaitedFor<'a>) -> WaitRow<'a> {
        let stacks = wait.stacks.iter().take(PLACES).map(|&(stack, total_ns)| {
            let frames = self.profile.stack_frames(stack);
            let frames = frames.map(|frame| (self.name)(self.profile.func_name(frame.func))).collect();
            WaitStack { total_ns, frames }
        });
        WaitRow { stacks: stacks.collect(), ..self.wait(wait) }
    }

    fn wait_place(&self, place: &WaitPlace<'a>) -> WaitPlaceRow<'a> {
        WaitPlaceRow {
            handle: self.handle(place.func),
            function: (self.name)(place.name),
            total_ns: place.total_ns,
        }
    }
}
