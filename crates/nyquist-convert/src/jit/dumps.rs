//! All jitdumps of a recording: which code is at an address, at a time.

use super::dump::Dump;
use super::symbols::JitSymbols;
use super::unwindable_code::UnwindableCode;
use crate::event::{Pid, Timestamp};
use crate::mappings::Range;
use crate::module_index::ModuleIndex;
use nyquist_object::Avma;
use std::ops;

/// The index of a jitdump in [`JitDumps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DumpIndex(pub(super) usize);

/// All known jitdumps. A child process continues with those of its parent.
#[derive(Debug, Default)]
pub(crate) struct JitDumps {
    dumps: Vec<Dump>,
    /// Whether each jitdump is removed from its folder when it has been opened.
    unlink: bool,
}

impl JitDumps {
    /// No jitdumps. Each is removed from its folder when it has been opened, if `unlink`.
    pub(crate) fn new(unlink: bool) -> Self {
        Self { dumps: Vec::new(), unlink }
    }

    /// Whether each jitdump is removed from its folder when it has been opened.
    pub(crate) fn are_unlinked(&self) -> bool {
        self.unlink
    }

    /// The jitdump of a module.
    pub(crate) fn of_module(&self, module: ModuleIndex) -> Option<DumpIndex> {
        self.dumps.iter().position(|dump| dump.module() == module).map(DumpIndex)
    }

    /// The index of the next jitdump.
    pub(crate) fn next_index(&self) -> DumpIndex {
        DumpIndex(self.dumps.len())
    }

    /// Adds a jitdump, at the index that [`next_index`](Self::next_index) returned.
    pub(crate) fn add(&mut self, dump: Dump) {
        self.dumps.push(dump);
    }

    /// Reads the records that were written since the last call.
    pub(crate) fn read_on(&mut self) {
        self.dumps.iter_mut().for_each(Dump::read_on);
    }

    /// The functions that were made before a time and were not returned yet: the process, the time, and the
    /// name as the compiler wrote it. Dumps with another clock are left out.
    pub(crate) fn take_new_functions(&mut self, before: Timestamp) -> Vec<(Pid, Timestamp, String)> {
        self.dumps.iter_mut().flat_map(|dump| dump.take_new_functions(before)).collect()
    }

    /// The modules of those that hold more than the budget allows, or records that are too large to be read.
    pub(crate) fn too_large(&self) -> impl Iterator<Item = ModuleIndex> {
        self.dumps.iter().filter(|dump| dump.is_too_large()).map(Dump::module)
    }

    /// The symbols of the jitdump at an index.
    pub(crate) fn symbols(&self, index: DumpIndex) -> Option<JitSymbols> {
        Some(JitSymbols::of_dump(self.dumps.get(index.0)?))
    }

    /// Whether all code of these dumps that was made by `time` has been read.
    pub(crate) fn are_read_up_to(&self, dumps: &[DumpIndex], time: Timestamp) -> bool {
        dumps.iter().filter_map(|index| self.dumps.get(index.0)).all(|dump| dump.is_read_up_to(time))
    }

    /// The code with unwind information that has appeared in a jitdump after the first `known` pieces.
    pub(crate) fn unwindable(&self, dump: DumpIndex, known: usize) -> &[UnwindableCode] {
        self.dumps.get(dump.0).map(|dump| dump.unwindable().since(known)).unwrap_or_default()
    }

    /// The code with unwind information that these jitdumps describe in a range of addresses now.
    pub(crate) fn unwindable_within<'a>(
        &'a self,
        dumps: &'a [DumpIndex],
        range: &'a ops::Range<u64>,
    ) -> impl Iterator<Item = &'a UnwindableCode> {
        let dumps = dumps.iter().filter_map(|index| self.dumps.get(index.0));
        dumps.flat_map(|dump| dump.unwindable().within(range))
    }

    /// The code that is at an address at a time, as a range of its lib. Times must not go back.
    pub(crate) fn find(&mut self, dumps: &[DumpIndex], address: Avma, time: Timestamp) -> Option<Range> {
        dumps.iter().rev().find_map(|index| self.dumps.get_mut(index.0)?.find(address, time))
    }
}
