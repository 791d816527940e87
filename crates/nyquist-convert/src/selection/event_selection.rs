//! Which events are requested in the profile, by the source's filter and by the user's selection.

use super::process_filter::ProcessFilter;
use super::sample_selection::SampleSelection;
use crate::event::{Pid, Tid, Timestamp};
use crate::processes::state::ProcessState;

/// Which events are requested.
#[derive(Debug)]
pub(crate) struct EventSelection {
    filter: ProcessFilter,
    selection: SampleSelection,
    /// The profile's zero.
    start: Timestamp,
}

impl EventSelection {
    /// The events that a filter and a selection leave, in a profile with this zero.
    pub(crate) fn new(filter: ProcessFilter, selection: SampleSelection, start: Timestamp) -> Self {
        Self { filter, selection, start }
    }

    /// Keeps only the samples that pass a filter from now on.
    pub(crate) fn keep_only(&mut self, filter: ProcessFilter) {
        self.filter = filter;
    }

    /// Whether samples of a process are requested. Process number 0 is that of idle CPUs.
    pub(crate) fn is_kept(&self, pid: Pid, now: Timestamp, processes: &mut ProcessState) -> bool {
        pid.0 != 0
            && match &self.filter {
                ProcessFilter::All => true,
                ProcessFilter::FromExec(waiting) => *waiting != pid,
                ProcessFilter::Family(_) => processes.process(pid, now).in_family,
                ProcessFilter::Named(names) => {
                    let process = processes.process(pid, now);
                    let main = process.threads.get(&Tid(pid.0)).map(|thread| &thread.name);
                    let mut names_of = [Some(&process.name), main].into_iter().flatten();
                    names_of.any(|name| names.iter().any(|pattern| pattern.matches(name)))
                }
            }
    }

    /// Notes that a process has a name, by `exec` or from its discovery.
    pub(crate) fn note_name(&mut self, pid: Pid, exec: bool, now: Timestamp, processes: &mut ProcessState) {
        match &mut self.filter {
            ProcessFilter::FromExec(waiting) if exec && *waiting == pid => self.filter = ProcessFilter::All,
            ProcessFilter::Family(pids) => {
                // The number is removed, because a later process with it is another one.
                let is_requested = pids.remove(&pid);
                processes.process(pid, now).in_family |= is_requested;
            }
            _ => {}
        }
    }

    /// Whether events of any thread are selected, on this CPU at this time.
    pub(crate) fn selects_moment(&self, cpu: Option<u32>, now: Timestamp) -> bool {
        self.selection.wants_moment(cpu, self.since_start(now))
    }

    /// A time in nanoseconds since the profile's zero.
    fn since_start(&self, now: Timestamp) -> u64 {
        now.0.saturating_sub(self.start.0)
    }

    /// Whether events of a thread are selected, on this CPU at this time.
    pub(crate) fn selects(
        &self,
        id: (Pid, Tid),
        cpu: Option<u32>,
        now: Timestamp,
        processes: &mut ProcessState,
    ) -> bool {
        let selection = &self.selection;
        if !selection.wants(id, cpu, self.since_start(now)) {
            return false;
        }
        if !selection.filters_by_name() {
            return true;
        }
        let process = processes.process(id.0, now);
        let thread = process.threads.get(&id.1).map_or("", |thread| &thread.name);
        selection.wants_name(&process.name, thread)
    }

    /// Whether all events are requested.
    pub(crate) fn is_all(&self) -> bool {
        self.filter == ProcessFilter::All && self.selection == SampleSelection::default()
    }
}
