//! The counters of a run: counters that are read at the end, or those of a command's threads, which start
//! and end.

use super::measured::{EventCount, Thread};
use crate::number::counted;
use crate::printer::Printer;
use nyquist_convert::event::Pid;
use nyquist_record::linux::counting::{CommandThreads, CountedThreads, EventCounters, EventReading};
use nyquist_record::linux::process_of_thread;
use nyquist_record::linux::ptrace::Notice;
use std::collections::HashMap;
use std::fs;

/// The counters of a run.
#[derive(Debug)]
pub(super) enum Counting {
    /// For all threads together, or for each running thread, with the threads' names.
    Counters(EventCounters, HashMap<u32, Thread>),
    /// For each thread of a command.
    CommandThreads(CommandThreads),
}

impl Counting {
    /// From counters. It reads the names of their threads now, because the threads may end.
    pub(super) fn of(counters: EventCounters) -> Self {
        let tids = counters.read().into_iter().filter_map(|reading| reading.thread);
        let threads = tids.enumerate().map(|(place, tid)| (tid, thread(place, tid)));
        let threads = threads.collect();
        Self::Counters(counters, threads)
    }

    /// The counters that can be read at any time.
    pub(super) fn counters(&self) -> Option<&EventCounters> {
        match self {
            Self::Counters(counters, _) => Some(counters),
            Self::CommandThreads(_) => None,
        }
    }

    /// Whether no event can be counted.
    pub(super) fn is_refused(&self) -> bool {
        self.counters().is_some_and(|counters| counters.read().iter().all(|reading| reading.count.is_err()))
    }

    /// Enables all counters that do not start by themselves.
    pub(super) fn enable(&self) {
        if let Some(counters) = self.counters() {
            counters.enable();
        }
    }

    /// Disables these counters.
    pub(super) fn disable(&self) {
        if let Some(counters) = self.counters() {
            counters.disable();
        }
    }

    /// Returns the counts. Warns about events that were not counted.
    pub(super) fn finish(self, printer: Printer) -> Vec<EventCount> {
        match self {
            Self::Counters(counters, threads) => {
                let counts = counters.read().into_iter().map(|reading| {
                    let thread = reading.thread.and_then(|tid| threads.get(&tid).cloned());
                    EventCount { thread, ..of_all(reading) }
                });
                counts.collect()
            }
            Self::CommandThreads(threads) => of_threads(threads.finish(), printer),
        }
    }
}

/// The counts of a command's threads.
fn of_threads(found: CountedThreads, printer: Printer) -> Vec<EventCount> {
    let CountedThreads { threads, not_counted, lost_privileges } = found;
    if not_counted > 0 {
        let threads = counted(not_counted, "further thread");
        printer.warn(format_args!("{threads} could not be counted, because there were too many"));
    }
    for program in lost_privileges {
        printer.warn(Notice::LosesPrivileges { program });
    }
    let counts = threads.into_iter().enumerate().flat_map(|(place, counts)| {
        let thread = Thread { place, pid: counts.pid, tid: counts.tid, name: counts.name };
        let account = counts.account;
        let one = move |reading| EventCount { thread: Some(thread.clone()), account, ..of_all(reading) };
        counts.readings.into_iter().map(one)
    });
    counts.collect()
}

fn of_all(reading: EventReading) -> EventCount {
    let EventReading { event, count, user_only, .. } = reading;
    EventCount { event, thread: None, account: None, count, user_only }
}

/// A running thread.
fn thread(place: usize, tid: u32) -> Thread {
    let name = fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).trim_end().to_owned();
    let pid = process_of_thread(Pid(tid)).map_or(tid, |Pid(pid)| pid);
    Thread { place, pid, tid, name }
}
