//! One process: its name, its threads and its mappings.

use super::arguments::Arguments;
use super::jit_state::ProcessJit;
use super::program_arguments::CommandLine;
use super::remainder::ProcessRemainder;
use super::thread::Thread;
use crate::event::pre_unwound::AddressSpaceHash;
use crate::event::{Mapping, Pid, Tid, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::jit::instructions::BLOCK_MEMORY;
use crate::mappings::{Mappings, Range};
use crate::module_index::ModuleIndex;
use crate::modules::mapping_kind::is_memory;
use crate::modules::replaced_text::ReplacedText;
use crate::modules::store::ModuleStore;
use crate::targets::Targets;
use nyquist_object::{Avma, RangeMap};
use nyquist_profile::ProcessIndex;
use nyquist_resources::{Budget, Charge};
use nyquist_unwind::{self as unwind, AddressSpace};
use rustc_hash::FxHashMap;
use std::path::Path;

/// One process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that happened to the process")]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) start: Timestamp,
    /// When it became its current program, if it has rows of an earlier program.
    pub(crate) program_start: Option<Timestamp>,
    pub(crate) end: Option<Timestamp>,
    /// Its index in the profile, once it has a sample.
    pub(crate) index: Option<ProcessIndex>,
    /// Whether this row was another process's before.
    pub(crate) reuses_row: bool,
    /// The program's first arguments, if they are requested.
    pub(crate) arguments: Arguments,
    /// The part of its command line that may distinguish it from other processes of its name.
    pub(crate) words: Vec<String>,
    /// Its threads. Most processes have one, for which a table has room for four: so they are behind pointers.
    pub(crate) threads: FxHashMap<Tid, Box<Thread>>,
    /// CPU time that no sample stands for yet.
    pub(crate) unsampled: ProcessRemainder,
    /// The code that it generates at run time.
    pub(crate) jit: ProcessJit,
    /// How many of the threads have not ended. For a server that has had a hundred thousand threads, counting
    /// them at each end would dominate.
    live: usize,
    mappings: Mappings,
    /// Memory that may hold the text of a file.
    replaced: ReplacedText,
    space: AddressSpace,
    /// The mappings since the process was last sampled. Their unwinding tables are not yet in `space`.
    unprepared: RangeMap<Option<(ModuleIndex, Avma)>>,
    /// What the records of the process and its threads take of the budget, until it has a row. The mappings
    /// charge their memory themselves, because processes share it.
    charge: Charge,
    /// What the instructions take of the budget that were read of code made at run time.
    instructions: Charge,
    /// Whether its mappings were dropped, because all processes took too much memory. It gets no new ones until
    /// it becomes another program.
    has_dropped_mappings: bool,
    /// Whether it was born from another known process.
    was_forked: bool,
    /// Whether it called `exec`. Then it only has the mappings that were reported since.
    became_another_program: bool,
    /// Whether the name may still be the one that the kernel truncated to 15 bytes.
    name_may_be_cut: bool,
    /// Whether it may have unknown mappings.
    has_unknown_code: bool,
    /// Whether it ran before its first event, and its mappings of that time were not reported.
    lacks_mappings: bool,
    /// Whether it denies access to its memory.
    pub(crate) denies_memory: bool,
    /// Whether it is one of the requested processes, or was born from one.
    pub(crate) in_family: bool,
}

/// How many mappings may be unprepared when a process has a child. The child has to prepare them for itself.
const MAX_UNPREPARED_AT_FORK: usize = 16;

/// An estimate of the memory of a thread, with its place in the table of threads.
const THREAD_BYTES: usize = size_of::<Thread>() + 4 * size_of::<(Tid, Box<Thread>)>();

/// The longest name that the kernel keeps of a thread (`TASK_COMM_LEN` less the final zero).
pub(crate) const MAX_COMM: usize = 15;

impl Process {
    /// A process without threads and mappings. Its memory, and that of its mappings, is charged to a budget.
    pub(crate) fn new(name: &str, start: Timestamp, budget: &Budget) -> Self {
        let mut charge = budget.charge();
        charge.set((size_of::<Self>() + 3 * size_of::<(Pid, Box<Self>)>() + name.len()) as u64);
        Self {
            name: name.to_owned(),
            start,
            program_start: None,
            end: None,
            index: None,
            reuses_row: false,
            arguments: Arguments::default(),
            words: Vec::new(),
            threads: FxHashMap::default(),
            unsampled: ProcessRemainder::default(),
            jit: ProcessJit::default(),
            live: 0,
            mappings: Mappings::within(budget),
            replaced: ReplacedText::default(),
            space: AddressSpace::within(budget),
            unprepared: RangeMap::within(budget),
            charge,
            instructions: budget.charge(),
            has_dropped_mappings: false,
            was_forked: false,
            became_another_program: false,
            name_may_be_cut: false,
            has_unknown_code: false,
            lacks_mappings: false,
            denies_memory: false,
            in_family: false,
        }
    }

    /// The process that is born from this one. It has a copy of this memory, and no thread yet.
    pub(super) fn child(&self, now: Timestamp) -> Self {
        let mut child = Self {
            was_forked: true,
            has_dropped_mappings: self.has_dropped_mappings,
            arguments: self.arguments.clone(),
            words: self.words.clone(),
            mappings: self.mappings.clone(),
            replaced: self.replaced.clone(),
            space: self.space.clone(),
            unprepared: self.unprepared.clone(),
            jit: self.jit.for_child(),
            has_unknown_code: self.has_unknown_code,
            lacks_mappings: self.lacks_mappings,
            denies_memory: self.denies_memory,
            in_family: self.in_family,
            ..Self::new(&self.name, now, self.charge.budget())
        };
        let words: usize = child.words.iter().map(|word| size_of::<String>() + word.len()).sum();
        child.charge.add((words + child.jit.bytes() + child.replaced.bytes()) as u64);
        child
    }

    /// Handles `exec`: the process only has the mappings that are reported from now on.
    pub(super) fn become_another_program(&mut self, name: &str) {
        self.arguments = Arguments::default();
        self.words.clear();
        self.unmap_all();
        self.has_dropped_mappings = false;
        self.jit = ProcessJit::default();
        self.instructions.set(0);
        self.became_another_program = true;
        self.has_unknown_code = false;
        self.lacks_mappings = false;
        self.denies_memory = false;
        self.name_may_be_cut = name.len() >= MAX_COMM;
    }

    /// Notes that records were lost, some of which may have been of mappings.
    pub(super) fn lose_records(&mut self) {
        self.has_unknown_code = true;
    }

    /// The process's name when its main thread takes a name. A program keeps its own name, even if it renames
    /// its main thread.
    pub(crate) fn name_after<'a>(&'a self, name: &'a str, exec: bool) -> &'a str {
        if exec || !self.became_another_program { name } else { &self.name }
    }

    /// Sets the program's arguments. `own_name` is the name of the main thread.
    pub(crate) fn set_command_line(&mut self, line: CommandLine, own_name: &str) {
        // A forked child without its own program keeps the name that it gives itself.
        if !self.became_another_program && !self.was_forked {
            line.program_name(own_name).clone_into(&mut self.name);
        }
        (self.arguments, self.words) = (line.arguments, line.words);
    }

    /// The name, and the arguments if they are requested.
    pub(crate) fn full_name(&self) -> String {
        with_arguments(&self.name, &self.arguments)
    }

    /// A thread, which begins now if it was not known.
    pub(crate) fn thread(&mut self, tid: Tid, now: Timestamp) -> &mut Thread {
        let Self { threads, name, live, charge, .. } = self;
        threads.entry(tid).or_insert_with(|| {
            *live += 1;
            charge.add((THREAD_BYTES + name.len()) as u64);
            Box::new(Thread::new(name, now))
        })
    }

    /// Whether a thread of the process lives.
    pub(crate) fn has_live(&self, tid: Tid) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.end.is_none())
    }

    /// The thread that has a row, if no other has one.
    pub(crate) fn only_thread_with_row(&self) -> Option<Tid> {
        let mut with_row = self.threads.iter().filter(|(_, thread)| thread.index.is_some());
        let (tid, _) = with_row.next()?;
        with_row.next().is_none().then_some(*tid)
    }

    /// Whether the kernel may have exchanged the clocks of its threads.
    pub(crate) fn shares_clocks(&self) -> bool {
        self.threads.len() > 1
    }

    /// Adds a new thread. If the tid is reused, its former thread is forgotten.
    pub(super) fn add_thread(&mut self, tid: Tid, name: &str, now: Timestamp) {
        let before = self.threads.insert(tid, Box::new(Thread::new(name, now)));
        if before.is_none() {
            self.charge.add((THREAD_BYTES + name.len()) as u64);
        }
        if before.is_none_or(|before| before.end.is_some()) {
            self.live += 1;
        }
    }

    /// Notes that a thread has ended. The process ends with its last thread. Returns whether the process has
    /// ended.
    pub(super) fn end_thread(&mut self, tid: Tid, now: Timestamp) -> bool {
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.end.replace(now).is_none()
        {
            self.live = self.live.saturating_sub(1);
        }
        if self.live == 0 {
            self.end = Some(now);
            self.release_instructions();
        }
        self.live == 0
    }

    /// Forgets its threads that have ended without a row. If the process has a row, its records are part of the
    /// profile, whose memory is not limited. Returns whether the process lives or has a row.
    pub(super) fn forget_ended(&mut self) -> bool {
        let before = self.threads.len();
        self.threads.retain(|_, thread| thread.end.is_none() || thread.index.is_some());
        let forgotten = (before - self.threads.len()) * THREAD_BYTES;
        let retained = self.charge.bytes().saturating_sub(forgotten as u64);
        self.charge.keep(if self.index.is_some() { 0 } else { retained });
        self.end.is_none() || self.index.is_some()
    }

    /// The number of its mappings.
    pub(super) fn mapping_count(&self) -> usize {
        self.mappings.len()
    }

    /// Releases the memory of the instructions that were read of it.
    fn release_instructions(&mut self) {
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

    pub(super) fn unmap_all(&mut self) {
        self.mappings.clear();
        self.replaced = ReplacedText::default();
        self.space = AddressSpace::within(self.charge.budget());
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

    pub(super) fn map(&mut self, mapping: &Mapping, modules: &mut ModuleStore) {
        let module = modules.of_mapping(mapping).map(|index| (index, modules.get(index).base(mapping)));
        let end = Avma(mapping.start.0.saturating_add(mapping.len));
        self.complete_name(&mapping.path);
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

    /// The first file that is mapped after `exec` is the program itself. If the kernel has truncated the
    /// program's name, the file has the whole name.
    fn complete_name(&mut self, path: &str) {
        if !std::mem::take(&mut self.name_may_be_cut) {
            return;
        }
        let file_name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if file_name.starts_with(&self.name) {
            file_name.clone_into(&mut self.name);
        }
    }
}

/// The name of a program, and its arguments if they are requested.
pub(crate) fn with_arguments(name: &str, arguments: &str) -> String {
    if arguments.is_empty() { name.to_owned() } else { format!("{name} {arguments}") }
}
