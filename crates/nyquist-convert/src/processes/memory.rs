//! How much memory processes may take beside the profile, and which of them lose their mappings if they take
//! more.

use super::process::Process;
use crate::event::Pid;
use nyquist_resources::Budget;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The memory for processes, in bytes, if nothing else is requested.
pub const DEFAULT_PROCESS_MEMORY: u64 = 200 << 20;

/// Processes with fewer mappings than this keep them until larger ones have lost theirs.
const FEW_MAPPINGS: usize = 256;

/// The budgets of what is kept of processes beside the profile. They are apart, so that a process that
/// exhausts one of them takes nothing from the others.
#[derive(Clone, Debug)]
pub(crate) struct ProcessMemory {
    /// For mappings, names and threads.
    pub(crate) mappings: Budget,
    /// For the names of mapped files.
    pub(crate) files: Budget,
    /// For the arguments of programs.
    pub(crate) arguments: Budget,
}

impl ProcessMemory {
    /// The budgets, which together have this many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let quarter = bytes / 4;
        Self {
            mappings: Budget::new(bytes - 2 * quarter),
            files: Budget::new(quarter),
            arguments: Budget::new(quarter),
        }
    }
}

/// Makes room if processes take more memory than their budget.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    budget: Budget,
    /// Room is made when more than this is used. It is more than the budget if that was not enough before.
    makes_room_at: u64,
    dropped: DroppedMappings,
}

/// The processes whose mappings were dropped.
#[derive(Debug, Default)]
struct DroppedMappings {
    processes: u64,
    /// The name of the first one.
    first: Option<(Pid, String)>,
}

impl MemoryLimit {
    /// A limit of this budget.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { makes_room_at: budget.most(), budget, dropped: DroppedMappings::default() }
    }

    /// The budget.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Whether room must be made now.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.budget.used() > self.makes_room_at
    }

    /// Makes room. Processes that have ended without a sample are forgotten first, except the last ones, which
    /// may still have events. Then the largest processes without samples lose their mappings, and then the
    /// largest ones of all.
    pub(crate) fn make_room(
        &mut self,
        processes: &mut FxHashMap<Pid, Box<Process>>,
        ended_last: &VecDeque<Pid>,
    ) {
        processes.retain(|pid, process| process.forget_ended() || ended_last.contains(pid));
        for pid in largest(processes) {
            if self.has_room() {
                break;
            }
            let Some(process) = processes.get_mut(&pid) else { continue };
            self.dropped.processes += 1;
            self.dropped.first.get_or_insert_with(|| (pid, process.name.clone()));
            process.code.drop_mappings();
        }
        // If nothing more can be dropped, trying again at each event would take all time.
        let used = self.budget.used();
        self.makes_room_at = self.budget.most().max(used.saturating_add(used / 4));
    }

    /// Whether so much is free that room need not be made again soon.
    pub(crate) fn has_room(&self) -> bool {
        self.budget.used() <= self.budget.most() / 4 * 3
    }

    /// A message to the user, if mappings were dropped.
    pub(crate) fn note(&self) -> Option<String> {
        let DroppedMappings { processes, first } = &self.dropped;
        let (pid, name) = first.as_ref()?;
        let more = match processes - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let most = self.budget.most() >> 20;
        Some(format!(
            "stacks are missing of process {} ({name}){more}: the mappings of processes took more than {most} MiB of memory (--max-memory allows more)",
            pid.0
        ))
    }
}

/// The processes with mappings, in the order in which they lose them.
fn largest(processes: &FxHashMap<Pid, Box<Process>>) -> Vec<Pid> {
    let mapped = processes.iter().filter(|(_, process)| process.code.mapping_count() > 0);
    let mut mapped: Vec<_> = mapped
        .map(|(pid, process)| {
            let count = process.code.mapping_count();
            let is_needed = process.index.is_some() || count < FEW_MAPPINGS;
            (is_needed, Reverse(count), *pid)
        })
        .collect();
    mapped.sort_unstable();
    mapped.into_iter().map(|(.., pid)| pid).collect()
}
