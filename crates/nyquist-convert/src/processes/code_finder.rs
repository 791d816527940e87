//! Finds the code at addresses of a process: that of mapped files, and that which was made at run time.

use super::process::Process;
use crate::event::{Pid, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::mappings::Range;
use crate::modules::store::ModuleStore;
use nyquist_object::Avma;

/// Finds the code of one process at one time.
pub(crate) struct CodeFinder<'a> {
    process: &'a mut Process,
    modules: &'a mut ModuleStore,
    dumps: &'a mut JitDumps,
    pid: Pid,
    now: Timestamp,
    /// The mapping that was found last. Callers are mostly in the same file.
    last: Option<Range>,
    /// The code made at run time that was found last.
    made: Option<Range>,
}

impl<'a> CodeFinder<'a> {
    /// Finds the code of this process as of a time. Times must not go back.
    pub(super) fn new(
        process: &'a mut Process,
        (modules, dumps): (&'a mut ModuleStore, &'a mut JitDumps),
        (pid, now): (Pid, Timestamp),
    ) -> Self {
        Self { process, modules, dumps, pid, now, last: None, made: None }
    }

    /// The range of the code at an address. It has no module if nothing is known of the code there.
    #[inline]
    pub(crate) fn find(&mut self, address: Avma) -> Option<&Range> {
        if !self.last.as_ref().is_some_and(|range| range.contains(address)) {
            self.last = self.process.code.find(address);
        }
        if self.last.as_ref().is_none_or(|range| range.module.is_none()) {
            self.made = self.find_made_code(address).or_else(|| self.unnamed_code(address));
            return self.made.as_ref();
        }
        self.last.as_ref()
    }

    /// One address of code that is in no file, and that nothing names. Its neighbours may have names, and it may get
    /// one itself as long as a jitdump is not read up to now: such code stays unknown, and is looked up again.
    fn unnamed_code(&mut self, address: Avma) -> Option<Range> {
        self.last.filter(|range| range.module.is_none())?;
        if !self.dumps.are_read_up_to(&self.process.code.jit.dumps, self.now) {
            return None;
        }
        let (module, base) = self.modules.add_unnamed_code(address)?;
        Some(Range { start: address, end: Avma(address.0.saturating_add(1)), module: Some((module, base)) })
    }

    /// The range of code that was generated while the program ran, and that no file holds.
    fn find_made_code(&mut self, address: Avma) -> Option<Range> {
        let jit = &mut self.process.code.jit;
        if jit.dumps.is_empty() {
            if !self.modules.knows_processes() {
                return None;
            }
            return jit.find_in_map(self.pid, address, self.now, self.modules);
        }
        self.dumps.find(&jit.dumps, address, self.now)
    }
}
