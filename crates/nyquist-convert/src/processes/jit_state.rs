//! The state of one process's just-in-time compilers.

use crate::event::{Mapping, Pid, Timestamp};
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::jit::instructions::{BLOCK_MEMORY, ReadInstructions};
use crate::jit::map_file::MapFile;
use crate::jit::unwindable_code::UnwindableCode;
use crate::mappings::Range;
use crate::modules::store::{CODE_WINDOW, ModuleStore};
use crate::targets::Targets;
use nyquist_object::Avma;
use nyquist_unwind::AddressSpace;
use std::ops;
use std::sync::Arc;

/// How long to wait before looking for a perf map again, after a process had none, in ns.
const PROBE_INTERVAL: u64 = 100_000_000;

/// The most libs that are made of a perf map. The code of real programs is in a few of them.
const MAX_WINDOWS: usize = 256;

/// The state of one process's just-in-time compilers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessJit {
    /// Its jitdumps, in the order in which they appeared.
    pub(crate) dumps: Vec<DumpIndex>,
    /// How many pieces of code with unwind information the unwinder knows, for each jitdump.
    mapped: Vec<usize>,
    map: Option<Arc<MapFile>>,
    /// The libs made of its perf map.
    windows: Vec<Range>,
    /// When to look for a perf map again.
    next_probe: Timestamp,
    /// The user whose rights the process had when it first generated code.
    pub(crate) user: Option<u32>,
    /// Whether its runtime writes the perf map only when it ends.
    maps_at_end: bool,
    /// The instructions that were read because code has no unwind information.
    instructions: ReadInstructions,
    /// Whether instructions were read, or another stage that follows the process knows more of its code.
    knows_code: bool,
}

impl ProcessJit {
    /// Notes a mapping: it may be a runtime, or new code in place of old code.
    pub(crate) fn note_mapping(&mut self, mapping: &Mapping) {
        self.maps_at_end |= mapping.path.ends_with("/libjvm.so");
        self.instructions.forget(mapping.start, mapping.len);
    }

    /// Whether more than the mappings is known of the process's code, because a jitdump describes it, or its
    /// instructions were read.
    pub(crate) fn knows_code(&self) -> bool {
        self.knows_code || !self.dumps.is_empty()
    }

    /// Notes that another tracker knows more of the process's code.
    pub(crate) fn note_known_code(&mut self) {
        self.knows_code = true;
    }

    /// How much memory its parts take.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = self.dumps.capacity() + self.mapped.capacity() + self.instructions.block_count();
        size_of::<Range>() * self.windows.capacity() + 2 * size_of::<u64>() * numbers
    }

    /// Notes that the process has mapped a jitdump.
    pub(crate) fn add_dump(&mut self, dump: DumpIndex) {
        if !self.dumps.contains(&dump) {
            self.dumps.push(dump);
        }
    }

    /// The state of a child that begins with a copy of this process's memory.
    pub(crate) fn for_child(&self) -> Self {
        Self { next_probe: Timestamp::default(), ..self.clone() }
    }

    /// Passes the code that has appeared since the last call to the unwinder.
    pub(crate) fn map_unwindable(&mut self, dumps: &JitDumps, space: &mut AddressSpace) {
        self.mapped.resize(self.dumps.len(), 0);
        for (&dump, mapped) in self.dumps.iter().zip(&mut self.mapped) {
            let new = dumps.unwindable(dump, *mapped);
            *mapped += new.len();
            for code in new {
                map_code(code, space);
            }
        }
    }

    /// Passes the code in a range to the unwinder again, because something else was passed for the range.
    pub(crate) fn map_unwindable_again(
        &self,
        range: &ops::Range<u64>,
        dumps: &JitDumps,
        space: &mut AddressSpace,
    ) {
        for code in dumps.unwindable_within(&self.dumps, range) {
            map_code(code, space);
        }
    }

    /// Reads the instructions of generated code around an address at which a walk ended, and passes them to
    /// the unwinder. Returns whether another walk is worthwhile. Code whose unwind information is in a jitdump
    /// is left unchanged. The range comes with whether there is room for more of its code.
    pub(crate) fn read_instructions(
        &mut self,
        at: (Pid, Avma, Timestamp),
        range: (&Range, bool),
        (space, targets): (&mut AddressSpace, &Targets),
        dumps: &JitDumps,
    ) -> bool {
        let address = at.1.0..at.1.0.saturating_add(1);
        if dumps.unwindable_within(&self.dumps, &address).next().is_some() {
            return false;
        }
        let Some(read) = self.instructions.read_around(at, range, (space, targets)) else { return false };
        self.map_unwindable_again(&read, dumps, space);
        self.knows_code = true;
        true
    }

    /// How much memory the instructions that were read take at most.
    pub(crate) fn instruction_bytes(&self) -> u64 {
        self.instructions.block_count() as u64 * BLOCK_MEMORY
    }

    /// Takes the instructions that were read from the unwinder. The process has ended.
    pub(crate) fn release_instructions(&mut self, space: &mut AddressSpace) {
        self.instructions.release(space);
    }

    /// The part of the process's perf map that names an address which is in no file. `None` if the process
    /// has no map.
    pub(crate) fn find_in_map(
        &mut self,
        pid: Pid,
        address: Avma,
        now: Timestamp,
        modules: &mut ModuleStore,
    ) -> Option<Range> {
        if let Some(range) = self.windows.iter().find(|range| range.start <= address && address < range.end) {
            return Some(*range);
        }
        if self.windows.len() >= MAX_WINDOWS {
            return None;
        }
        let map = self.map(pid, now, modules)?;
        let start = Avma(address.0 & !(CODE_WINDOW - 1));
        let module = modules.add_perf_map(&map, pid, start)?;
        let end = Avma(start.0.saturating_add(CODE_WINDOW));
        let range = Range { start, end, module: Some((module, start)) };
        self.windows.push(range);
        Some(range)
    }

    fn map(&mut self, pid: Pid, now: Timestamp, modules: &ModuleStore) -> Option<Arc<MapFile>> {
        if self.map.is_none() && now >= self.next_probe {
            self.next_probe = Timestamp(now.0.saturating_add(PROBE_INTERVAL));
            self.map = modules.find_perf_map(pid, self.user, self.maps_at_end).map(Arc::new);
        }
        self.map.clone()
    }
}

/// Passes code to the unwinder.
fn map_code(code: &UnwindableCode, space: &mut AddressSpace) {
    match &code.module {
        Some(module) => space.map(code.start, code.len, code.start, Arc::clone(module)),
        None => space.map_code(code.start, code.len),
    }
}
