//! The code of a process: what is mapped where, what the unwinder knows of it, and what is made at run time.

use super::jit_state::ProcessJit;
use crate::event::pre_unwound::AddressSpaceHash;
use crate::event::{Mapping, Pid, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::jit::instructions::BLOCK_MEMORY;
use crate::mappings::{Mappings, Range};
use crate::module_index::ModuleIndex;
use crate::modules::mapping_kind::is_memory;
use crate::modules::replaced_text::ReplacedText;
use crate::modules::store::ModuleStore;
use crate::targets::Targets;
use nyquist_object::{Avma, RangeMap};
use nyquist_resources::{Budget, Charge};
use nyquist_unwind::{self as unwind, AddressSpace};

/// How many mappings may be unprepared when a process has a child. The child has to prepare them for itself.
const MAX_UNPREPARED_AT_FORK: usize = 16;

/// The code of a process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that happened to the process")]
pub(crate) struct ProcessCode {
    /// The code that the process generates at run time.
    pub(crate) jit: ProcessJit,
    mappings: Mappings,
    /// Memory that may hold the text of a file.
    replaced: ReplacedText,
    space: AddressSpace,
    /// The mappings since the process was last sampled. Their unwinding tables are not yet in `space`.
    unprepared: RangeMap<Option<(ModuleIndex, Avma)>>,
    /// What the instructions take of the budget that were read of code made at run time.
    instructions: Charge,
    /// Whether the mappings were dropped, because all processes took too much memory. The process gets no new ones
    /// until it becomes another program.
    has_dropped_mappings: bool,
    /// Whether the process called `exec`. Then it only has the mappings that were reported since.
    became_another_program: bool,
    /// Whether there may be unknown mappings.
    has_unknown_code: bool,
    /// Whether the process ran before its first event, and its mappings of that time were not reported.
    lacks_mappings: bool,
    /// Whether the process denies access to its memory.
    pub(crate) denies_memory: bool,
}

impl ProcessCode {
    /// No code. The memory of mappings is charged to a budget.
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            jit: ProcessJit::default(),
            mappings: Mappings::within(budget),
            replaced: ReplacedText::default(),
            space: AddressSpace::within(budget),
            unprepared: RangeMap::within(budget),
            instructions: budget.charge(),
            has_dropped_mappings: false,
            became_another_program: false,
            has_unknown_code: false,
            lacks_mappings: false,
            denies_memory: false,
        }
    }

    /// The code of a child, which has a copy of the memory.
    pub(super) fn for_child(&self) -> Self {
        Self {
            jit: self.jit.for_child(),
            mappings: self.mappings.clone(),
            replaced: self.replaced.clone(),
            space: self.space.clone(),
            unprepared: self.unprepared.clone(),
            instructions: self.instructions.budget().charge(),
            has_dropped_mappings: self.has_dropped_mappings,
            became_another_program: false,
            has_unknown_code: self.has_unknown_code,
            lacks_mappings: self.lacks_mappings,
            denies_memory: self.denies_memory,
        }
    }

    /// Handles `exec`: the process only has the mappings that are reported from now on.
    pub(super) fn become_another_program(&mut self) {
        *self = Self { became_another_program: true, ..Self::new(self.instructions.budget()) };
    }

    /// Whether the process called `exec`.
    pub(super) fn is_of_another_program(&self) -> bool {
        self.became_another_program
    }

    /// An estimate of the memory that a child does not share, apart from mappings, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.jit.bytes() + self.replaced.bytes()
    }

    /// Notes that records were lost, some of which may have been of mappings.
    pub(super) fn lose_records(&mut self) {
        self.has_unknown_code = true;
    }

    /// The number of its mappings.
    pub(super) fn mapping_count(&self) -> usize {
        self.mappings.len()
    }

    /// Releases the memory of the instructions that were read of it.
    pub(super) fn release_instructions(&mut self) {
        self.jit.release_instructions(&mut self.space);
        self.instructions.set(0);
    }

    /// Drops its mappings to make room, and takes no more of them.
    pub(super) fn drop_mappings(&mut self) {
        self.release_instructions();
        self.unmap_all();
        self.has_dropped_mappings = true;
    }

    /// Whether its mappings were dropped to make room.
    pub(crate) fn has_dropped_mappings(&self) -> bool {
        self.has_dropped_mappings
    }

    /// Forgets all mappings.
    pub(super) fn unmap_all(&mut self) {
        self.mappings.clear();
        self.replaced = ReplacedText::default();
        self.space = AddressSpace::within(self.instructions.budget());
        self.unprepared.clear();
    }

    /// The range that holds an address.
    pub(crate) fn find(&self, address: Avma) -> Option<Range> {
        self.mappings.find(address)
    }

    /// The address space for the unwinder. Unwinding tables are compiled for the mappings since the last
    /// call.
    pub(crate) fn address_space(&mut self, modules: &ModuleStore, dumps: &JitDumps) -> &AddressSpace {
        for range in self.unprepared.iter() {
            let len = range.end.0 - range.start.0;
            let tables = range.value.and_then(|(module, base)| Some((base, modules.get(module).unwind()?)));
            match tables {
                Some((base, module)) => self.space.map(range.start, len, base, module),
                None => {
                    self.space.map_code(range.start, len);
                    self.jit.map_unwindable_again(&(range.start.0..range.end.0), dumps, &mut self.space);
                }
            }
        }
        self.unprepared.clear();
        self.jit.map_unwindable(dumps, &mut self.space);
        &self.space
    }

    /// Prepares the mappings for the unwinder before a child gets a copy of them, if there are many. Otherwise
    /// each child would do this work, and keep its result.
    pub(super) fn prepare_for_child(&mut self, modules: &ModuleStore, dumps: &JitDumps) {
        if self.unprepared.len() > MAX_UNPREPARED_AT_FORK {
            self.address_space(modules, dumps);
        }
    }

    /// A hash of the current mappings, independent of their order. It is the same in all processes and for
    /// all stores that share opened files. O(1).
    pub(crate) fn code_state(&self) -> AddressSpaceHash {
        AddressSpaceHash(self.mappings.hash().wrapping_add(self.became_another_program.into()))
    }

    /// Passes the instructions around an address at which a walk ended to the unwinder, if the address is in
    /// generated code. Returns whether the walk may get further now. `at` is the process, the address and the
    /// sample's time.
    pub(crate) fn read_instructions(
        &mut self,
        at: (Pid, Avma, Timestamp),
        targets: &Targets,
        dumps: &JitDumps,
    ) -> bool {
        let Some(range) = self.mappings.find(at.1).filter(|range| range.module.is_none()) else {
            return false;
        };
        // Half of the budget stays for mappings, without which there are no stacks at all.
        let budget = self.instructions.budget();
        let has_room = budget.used().saturating_add(BLOCK_MEMORY) <= budget.most() / 2;
        let has_read = self.jit.read_instructions(at, (&range, has_room), (&mut self.space, targets), dumps);
        self.instructions.set(self.jit.instruction_bytes());
        has_read
    }

    /// The part of a walk by frame pointers, innermost first, that is in code. No call leaves an address
    /// outside of code on the stack. If not all code is known, it is the whole walk. The kernel also reports
    /// memory that becomes executable later, so this is valid for code that is generated at run time.
    pub(crate) fn part_in_code<'a>(&mut self, stack: &'a [Avma], in_kernel: bool) -> &'a [Avma] {
        let Some((&ip, callers)) = stack.split_first() else { return stack };
        // The instruction pointer is always in code. During `exec`, it may be in the code of the old program.
        let may_be_before = in_kernel && self.became_another_program;
        self.has_unknown_code |= !may_be_before && !self.is_in_code(ip);
        if self.has_unknown_code || self.mappings.is_empty() {
            return stack;
        }
        let mut last = None;
        let mut is_in_code = |address: &Avma| {
            let call = Avma(address.0.wrapping_sub(1));
            last = last.filter(|range: &Range| range.contains(call)).or_else(|| self.find(call));
            last.is_some() || self.is_in_code(*address)
        };
        let in_code = callers.iter().take_while(|address| is_in_code(address)).count();
        &stack[..=in_code]
    }

    /// Whether an address is in executable memory that is known. The page at a fixed address that old
    /// programs use for system calls is not reported (`VSYSCALL_ADDR` in
    /// `arch/x86/include/uapi/asm/vsyscall.h`).
    fn is_in_code(&self, address: Avma) -> bool {
        const VSYSCALLS: std::ops::Range<u64> = 0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000;
        self.find(address).is_some() || VSYSCALLS.contains(&address.0)
    }

    /// Whether the mappings at its first event are unknown. This is checked at samples, because the first
    /// sample comes after the reports of all running processes.
    pub(crate) fn lacks_mappings(&mut self) -> bool {
        self.lacks_mappings |= self.mappings.is_empty() && !self.became_another_program;
        self.lacks_mappings || self.has_dropped_mappings
    }

    /// The current mappings.
    pub(crate) fn mappings(&self) -> Mappings {
        self.mappings.clone()
    }

    /// Whether the kernel is replacing the process's program (`exec`). Then the old program's stack is gone,
    /// and the registers are still those of its system call. A fault at a stack page that is used for the
    /// first time also has no copy. The registers may not distinguish the two cases. If `exec` is treated as
    /// such a fault, the stack is truncated.
    pub(crate) fn is_between_programs(&self, registers: &unwind::Registers, stack: &[u8]) -> bool {
        let has_called = registers.may_be_of_system_call();
        let is_unknown_code = || self.find(registers.instruction_pointer()).is_none();
        (stack.is_empty() && has_called) || (self.became_another_program && is_unknown_code())
    }

    /// Adds a mapping, unless the mappings were dropped.
    pub(super) fn map(&mut self, mapping: &Mapping, modules: &mut ModuleStore) {
        let module = modules.of_mapping(mapping).map(|index| (index, modules.get(index).base(mapping)));
        let end = Avma(mapping.start.0.saturating_add(mapping.len));
        if self.has_dropped_mappings {
            return;
        }
        if module.is_none() && is_memory(&mapping.path) {
            self.replaced.note(mapping.start, end, &self.mappings);
        } else {
            self.replaced.forget(mapping.start, end);
        }
        self.put(Range { start: mapping.start, end, module }, modules);
        self.jit.note_mapping(mapping);
    }

    /// Removes a part of the address space.
    pub(super) fn unmap(&mut self, start: Avma, len: u64) {
        let end = Avma(start.0.saturating_add(len));
        self.mappings.remove(start, end);
        self.replaced.forget(start, end);
        self.unprepared.remove(start, end);
        self.space.unmap(start, len);
    }

    fn put(&mut self, range: Range, modules: &ModuleStore) {
        let module = range.module.map(|(module, _)| modules.get(module));
        let identity = module.map_or(0, |module| std::ptr::from_ref(module).addr());
        self.mappings.insert(range, identity);
        self.unprepared.insert(range.start, range.end, range.module);
    }

    /// Checks whether memory of a living process that was mapped over a file's text has that text again.
    pub(crate) fn find_replaced_text(&mut self, pid: Pid, modules: &ModuleStore) {
        if self.replaced.is_empty() || !modules.are_live() {
            return;
        }
        for range in self.replaced.compare_due(pid, &self.mappings, modules) {
            self.put(range, modules);
        }
    }
}
