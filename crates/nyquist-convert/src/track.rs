//! The track stage: which processes and threads there are, what they are called, and what is mapped in them.

use crate::account::CpuTimeRemainder;
use crate::event::{Mapping, Pid, Tid, Timestamp};
use crate::jit::{JitDumps, ProcessJit};
use crate::mappings::{Mappings, Range};
use crate::modules::{ModuleIndex, ModuleStore};
use crate::program_arguments::CommandLine;
use crate::replaced_text::{ReplacedText, is_memory};
use nyquist_object::{Avma, RelativeAddress};
use nyquist_profile::{ProcessIndex, ThreadIndex};
use nyquist_unwind::{self as unwind, AddressSpace};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

/// Of so many processes that have ended it is known what they had mapped.
const MAPPED_AFTER_END: usize = 64;

/// Everything that is known of the processes that live, and of those that have just ended.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    processes: FxHashMap<Pid, Process>,
    kernel: Mappings,
    /// The last processes that have ended, the latest last.
    ended: VecDeque<Pid>,
}

/// One process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that happened to the process")]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<Timestamp>,
    /// Its place in the profile, once it has a sample.
    pub(crate) index: Option<ProcessIndex>,
    /// Whether that place was another's before.
    pub(crate) reuses_row: bool,
    /// The program's first arguments, where they are asked for.
    pub(crate) arguments: String,
    /// What of its command line may tell it apart from other processes of its name.
    pub(crate) words: Vec<String>,
    pub(crate) threads: FxHashMap<Tid, Thread>,
    /// The code that it makes while it runs.
    pub(crate) jit: ProcessJit,
    /// How many of the threads have not ended: counting them anew at every end would cost a server that has had
    /// a hundred thousand threads more than all else.
    living: usize,
    mappings: Mappings,
    /// Memory that may hold the text of a file.
    replaced: ReplacedText,
    space: AddressSpace,
    /// What was mapped since the process was last sampled: its tables are not yet in `space`.
    unprepared: Vec<Range>,
    /// The state of the three, where it was asked for since they have changed.
    code_state: Option<AddressSpaceHash>,
    /// Whether it was born from another process that is known.
    was_forked: bool,
    /// Whether it called `exec`: then nothing is mapped but what was heard of since.
    became_another_program: bool,
    /// Whether the name still is the one that the kernel cut to 15 bytes.
    name_may_be_cut: bool,
    /// Whether something may be mapped that was not heard of.
    has_unknown_code: bool,
    /// Whether it ran before it was heard of, and nobody has said what was mapped then.
    lacks_mappings: bool,
    /// Whether it is one of the processes that were asked for, or was born from one.
    pub(crate) in_family: bool,
}

/// What is mapped in a process at a time, as a number: where it is the same, stacks are walked alike. It says nothing of code
/// that a jitdump describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressSpaceHash(u64);

/// One thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<Timestamp>,
    /// Its place in the profile, once it has a sample.
    pub(crate) index: Option<ThreadIndex>,
    /// Whether that place was another's before.
    pub(crate) reuses_row: bool,
    /// On each CPU, its CPU time there at its last sample.
    cpu_times: Vec<CpuTime>,
    /// The same of the events that have taken over from the first ones.
    later_cpu_times: Vec<CpuTime>,
    /// CPU time that no sample stands for yet.
    pub(crate) unsampled: CpuTimeRemainder,
    /// Time off the CPU that no sample stands for yet.
    pub(crate) waited: CpuTimeRemainder,
    /// CPU time that no sample's delta holds yet, in nanoseconds.
    pub(crate) unshown_ns: u64,
}

/// CPU time on a CPU, or on all of them together.
#[derive(Clone, Copy, Debug)]
struct CpuTime {
    cpu: Option<u32>,
    ns: u64,
    /// When it was told.
    at: Timestamp,
}

/// CPU time that a thread has used since it was last heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// In nanoseconds.
    pub(crate) ns: u64,
    /// When it was last heard of.
    pub(crate) since: Timestamp,
}

/// The longest name that the kernel keeps of a thread (`TASK_COMM_LEN` less the final zero).
pub(crate) const MAX_COMM: usize = 15;

impl Thread {
    fn new(name: &str, start: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            start,
            end: None,
            index: None,
            reuses_row: false,
            cpu_times: Vec::new(),
            later_cpu_times: Vec::new(),
            unsampled: CpuTimeRemainder::default(),
            waited: CpuTimeRemainder::default(),
            unshown_ns: 0,
        }
    }

    /// What the thread has used since it was last heard of on a CPU, given what it has used there in all, in nanoseconds, by
    /// now; or, without one, on all of them together.
    pub(crate) fn cpu_delta(&mut self, cpu: Option<u32>, total_ns: u64, now: Timestamp) -> Used {
        let known = self.cpu_times.iter().chain(&self.later_cpu_times);
        let known = known.filter(|known| cpu.is_none() || known.cpu == cpu);
        let used = self.used_since(known, total_ns);
        add_time(&mut self.cpu_times, CpuTime { cpu, ns: used.ns, at: now });
        used
    }

    /// The same, given what it has used on a CPU since another event has taken over. What it used between the first one's
    /// last sample and then comes to light with the whole.
    pub(crate) fn later_cpu_delta(&mut self, cpu: Option<u32>, since_ns: u64, now: Timestamp) -> Used {
        let known = self.later_cpu_times.iter().filter(|known| known.cpu == cpu);
        let used = self.used_since(known, since_ns);
        add_time(&mut self.later_cpu_times, CpuTime { cpu, ns: used.ns, at: now });
        used
    }

    /// What of a sum is not known yet. Files can say that there was more time than there is.
    fn used_since<'a>(&self, known: impl Iterator<Item = &'a CpuTime>, total_ns: u64) -> Used {
        let (known_ns, since) = known.fold((0, self.start), |(sum, since): (u64, _), known| {
            (sum.saturating_add(known.ns), since.max(known.at))
        });
        Used { ns: total_ns.saturating_sub(known_ns), since }
    }
}

fn add_time(times: &mut Vec<CpuTime>, more: CpuTime) {
    match times.iter_mut().find(|known| known.cpu == more.cpu) {
        Some(known) => *known = CpuTime { ns: known.ns.saturating_add(more.ns), ..more },
        None => times.push(more),
    }
}

impl Process {
    pub(crate) fn new(name: &str, start: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            start,
            end: None,
            index: None,
            reuses_row: false,
            arguments: String::new(),
            words: Vec::new(),
            threads: FxHashMap::default(),
            jit: ProcessJit::default(),
            living: 0,
            mappings: Mappings::default(),
            replaced: ReplacedText::default(),
            space: AddressSpace::new(),
            unprepared: Vec::new(),
            code_state: None,
            was_forked: false,
            became_another_program: false,
            name_may_be_cut: false,
            has_unknown_code: false,
            lacks_mappings: false,
            in_family: false,
        }
    }

    /// What the process is called when its main thread takes a name: a program keeps its own, also where it calls its main
    /// thread otherwise.
    pub(crate) fn name_after<'a>(&'a self, name: &'a str, exec: bool) -> &'a str {
        if exec || !self.became_another_program { name } else { &self.name }
    }

    /// What the program was called with is known. `own_name` is that of the main thread.
    pub(crate) fn set_command_line(&mut self, line: CommandLine, own_name: &str) {
        // A child that is no program of its own is what it calls itself.
        if !self.became_another_program && !self.was_forked {
            line.program_name(own_name).clone_into(&mut self.name);
        }
        (self.arguments, self.words) = (line.arguments, line.words);
    }

    /// The name, and the arguments where they are asked for.
    pub(crate) fn full_name(&self) -> String {
        with_arguments(&self.name, &self.arguments)
    }

    /// A thread, which begins now if it was not known.
    pub(crate) fn thread(&mut self, tid: Tid, now: Timestamp) -> &mut Thread {
        let (name, living) = (&self.name, &mut self.living);
        self.threads.entry(tid).or_insert_with(|| {
            *living += 1;
            Thread::new(name, now)
        })
    }

    /// A thread is born; one of the same number that lived before is forgotten.
    fn add_thread(&mut self, tid: Tid, name: &str, now: Timestamp) {
        let before = self.threads.insert(tid, Thread::new(name, now));
        if before.is_none_or(|before| before.end.is_some()) {
            self.living += 1;
        }
    }

    /// A thread has ended, and with the last one the process. Says whether that one has.
    fn end_thread(&mut self, tid: Tid, now: Timestamp) -> bool {
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.end.replace(now).is_none()
        {
            self.living = self.living.saturating_sub(1);
        }
        if self.living == 0 {
            self.end = Some(now);
        }
        self.living == 0
    }

    fn unmap_all(&mut self) {
        self.mappings = Mappings::default();
        self.replaced = ReplacedText::default();
        self.space = AddressSpace::new();
        self.unprepared = Vec::new();
        self.code_state = None;
    }

    /// The range that holds an address.
    pub(crate) fn find(&self, address: Avma) -> Option<&Range> {
        self.mappings.find(address)
    }

    /// The address space for the unwinder. Tables are compiled for what was mapped since the last call.
    pub(crate) fn address_space(&mut self, modules: &ModuleStore, dumps: &JitDumps) -> &AddressSpace {
        for range in std::mem::take(&mut self.unprepared) {
            let len = range.end.0 - range.start.0;
            let tables = range.module.and_then(|(module, base)| Some((base, modules.get(module).unwind()?)));
            match tables {
                Some((base, module)) => self.space.map(range.start, len, base, module),
                None => self.space.map_code(range.start, len),
            }
        }
        self.jit.map_unwindable(dumps, &mut self.space);
        &self.space
    }

    /// What is mapped now, in whatever order it was. It is the same in all processes and for all stores that share what they
    /// open. O(n) in the number of mappings after one of them has changed.
    pub(crate) fn code_state(&mut self, modules: &ModuleStore) -> AddressSpaceHash {
        let (mappings, is_another) = (&self.mappings, self.became_another_program);
        *self.code_state.get_or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            is_another.hash(&mut hasher);
            for Range { start, end, module } in mappings.ranges() {
                let module = module.map(|(module, base)| (std::ptr::from_ref(modules.get(module)), base));
                (start, end, module).hash(&mut hasher);
            }
            AddressSpaceHash(hasher.finish())
        })
    }

    /// Gives the unwinder the instructions around an address that it could not go beyond, where that is in made code: says
    /// whether it may come further now. `at` is the process, the address and the sample's time.
    pub(crate) fn read_instructions(&mut self, at: (Pid, Avma, Timestamp)) -> bool {
        let Some(range) = self.mappings.find(at.1).filter(|range| range.module.is_none()) else {
            return false;
        };
        self.jit.read_instructions(at, range, &mut self.space)
    }

    /// The part of a walk by frame pointers, innermost first, that is in code: an address that is not, no call has left on the
    /// stack. All of it where not all code is known. The kernel tells of all executable memory, also of what becomes executable
    /// later, so that this holds for code that is made while the program runs.
    pub(crate) fn part_in_code<'a>(&mut self, stack: &'a [Avma], in_kernel: bool) -> &'a [Avma] {
        let Some((&ip, callers)) = stack.split_first() else { return stack };
        // What runs is code. In the middle of `exec`, it may be that of the old program.
        let may_be_before = in_kernel && self.became_another_program;
        self.has_unknown_code |= !may_be_before && !self.is_in_code(ip);
        if self.has_unknown_code || self.mappings.is_empty() {
            return stack;
        }
        let mut last = None;
        let mut is_in_code = |address: &Avma| {
            let call = Avma(address.0.wrapping_sub(1));
            last = last.filter(|range: &&Range| range.contains(call)).or_else(|| self.find(call));
            last.is_some() || self.is_in_code(*address)
        };
        let in_code = callers.iter().take_while(|address| is_in_code(address)).count();
        &stack[..=in_code]
    }

    /// Which address of a walk by frame pointers is the bottom of a coroutine's stack, where one is: the beginning of a function
    /// to which no call returns, such as `__start_context`. The frame pointer there is of whichever stack made the coroutine, so
    /// that what a walk finds beyond it called nothing. O(log n) in the functions of a module for one address in sixteen.
    pub(crate) fn stack_bottom(&self, stack: &[Avma], modules: &ModuleStore) -> Option<usize> {
        // Functions in assembly are aligned to this (`ENTRY` of glibc), which few return addresses are.
        const ALIGNED: u64 = 16;
        let mut callers = stack.iter().enumerate().skip(1);
        let bottom = callers
            .find(|(_, address)| address.0.is_multiple_of(ALIGNED) && self.begins_apart(**address, modules));
        bottom.map(|(position, _)| position)
    }

    /// Whether a function begins at an address that none reaches up to.
    fn begins_apart(&self, address: Avma, modules: &ModuleStore) -> bool {
        let place = self.find(address).and_then(|range| range.module);
        place.is_some_and(|(module, base)| {
            let relative = address.0.checked_sub(base.0).and_then(|relative| u32::try_from(relative).ok());
            let tables = modules.get(module).unwind();
            tables
                .zip(relative)
                .is_some_and(|(tables, address)| tables.begins_apart(RelativeAddress(address)))
        })
    }

    /// Whether an address is in executable memory that is known. Nobody tells of the page at a fixed address in which old programs
    /// call the kernel (`VSYSCALL_ADDR` in `arch/x86/include/uapi/asm/vsyscall.h`).
    fn is_in_code(&self, address: Avma) -> bool {
        const VSYSCALLS: std::ops::Range<u64> = 0xffff_ffff_ff60_0000..0xffff_ffff_ff60_1000;
        self.find(address).is_some() || VSYSCALLS.contains(&address.0)
    }

    /// Whether it is not known what was mapped when it was first heard of: asked at the samples, of which the first comes after all
    /// that is said of processes that run already.
    pub(crate) fn lacks_mappings(&mut self) -> bool {
        self.lacks_mappings |= self.mappings.is_empty() && !self.became_another_program;
        self.lacks_mappings
    }

    /// What is mapped, as it is now.
    pub(crate) fn mappings(&self) -> Mappings {
        self.mappings.clone()
    }

    /// Whether the kernel is replacing the process's program (`exec`): the old program's stack is gone, and the
    /// registers still are those with which it called the kernel. Of a fault at a page of the stack that is used for the first time
    /// there is no copy, either; who takes exec for one, where registers do not tell them apart, shows a stack that is cut.
    pub(crate) fn is_between_programs(&self, registers: &unwind::Registers, stack: &[u8]) -> bool {
        let has_called = registers.may_be_of_system_call();
        let is_unknown_code = || self.find(registers.instruction_pointer()).is_none();
        (stack.is_empty() && has_called) || (self.became_another_program && is_unknown_code())
    }

    fn map(&mut self, mapping: &Mapping, modules: &mut ModuleStore) {
        let module = modules.of_mapping(mapping).map(|index| (index, modules.get(index).base(mapping)));
        let end = Avma(mapping.start.0.saturating_add(mapping.len));
        if module.is_none() && is_memory(&mapping.path) {
            self.replaced.note(mapping.start, end, &self.mappings);
        } else {
            self.replaced.forget(mapping.start, end);
        }
        self.put(Range { start: mapping.start, end, module });
        self.jit.note_mapping(mapping);
        self.complete_name(&mapping.path);
    }

    fn put(&mut self, range: Range) {
        self.mappings.insert(range);
        self.unprepared.push(range);
        self.code_state = None;
    }

    /// Looks whether memory of a living process that was mapped over a file's text has that text again.
    pub(crate) fn find_replaced_text(&mut self, pid: Pid, modules: &ModuleStore) {
        if self.replaced.is_empty() || !modules.are_live() {
            return;
        }
        for range in self.replaced.look(pid, &self.mappings, modules) {
            self.put(range);
        }
    }

    /// The first file that is mapped after `exec` is the program itself: where the kernel has cut its name, the
    /// file has the whole.
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

/// The name of a program, and its arguments where they are asked for.
pub(crate) fn with_arguments(name: &str, arguments: &str) -> String {
    if arguments.is_empty() { name.to_owned() } else { format!("{name} {arguments}") }
}

impl Tracker {
    /// A process, which begins now if it was not known.
    pub(crate) fn process(&mut self, pid: Pid, now: Timestamp) -> &mut Process {
        self.processes.entry(pid).or_insert_with(|| Process::new(&format!("<{}>", pid.0), now))
    }

    /// A thread that is known, and has not ended.
    pub(crate) fn living_thread(&self, pid: Pid, tid: Tid) -> Option<&Thread> {
        let thread = self.processes.get(&pid)?.threads.get(&tid)?;
        thread.end.is_none().then_some(thread)
    }

    /// The range of the kernel's address space that holds an address.
    pub(crate) fn find_kernel(&self, address: Avma) -> Option<&Range> {
        self.kernel.find(address)
    }

    /// All processes.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&Pid, &Process)> {
        self.processes.iter()
    }

    /// Something was mapped.
    pub(crate) fn map(&mut self, mapping: &Mapping, now: Timestamp, modules: &mut ModuleStore) {
        match mapping.pid {
            Some(pid) => self.process(pid, now).map(mapping, modules),
            None => {
                let end = Avma(mapping.start.0.saturating_add(mapping.len));
                let module =
                    modules.of_mapping(mapping).map(|index| (index, modules.get(index).base(mapping)));
                self.kernel.insert(Range { start: mapping.start, end, module });
            }
        }
    }

    /// Code of the kernel appeared.
    pub(crate) fn map_kernel_code(&mut self, start: Avma, len: u64, module: Option<(ModuleIndex, Avma)>) {
        self.kernel.insert(Range { start, end: Avma(start.0.saturating_add(len)), module });
    }

    /// Code of the kernel went away.
    pub(crate) fn unmap_kernel_code(&mut self, start: Avma, len: u64) {
        self.kernel.remove(start, Avma(start.0.saturating_add(len)));
    }

    /// Part of an address space went away.
    pub(crate) fn unmap(&mut self, pid: Pid, start: Avma, len: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            let end = Avma(start.0.saturating_add(len));
            process.mappings.remove(start, end);
            process.replaced.forget(start, end);
            process.unprepared.retain(|range| range.start < start || range.start.0 - start.0 >= len);
            process.space.unmap(start, len);
            process.code_state = None;
        }
    }

    /// Records were lost: some of them may have told of mappings.
    pub(crate) fn lose_records(&mut self) {
        self.processes.values_mut().for_each(|process| process.has_unknown_code = true);
    }

    /// A thread was born. Gives back the process of the same number that lived before, where this one is new.
    pub(crate) fn fork(&mut self, pid: Pid, tid: Tid, parent: (Pid, Tid), now: Timestamp) -> Option<Process> {
        let (parent_pid, parent_tid) = parent;
        if pid == parent_pid {
            let process = self.process(pid, now);
            let name = process.threads.get(&parent_tid).map_or(&process.name, |thread| &thread.name).clone();
            process.add_thread(tid, &name, now);
            return None;
        }
        let parent = self.process(parent_pid, now);
        let mut child = Process::new(&parent.name, now);
        child.was_forked = true;
        child.arguments.clone_from(&parent.arguments);
        child.words.clone_from(&parent.words);
        child.mappings = parent.mappings.clone();
        child.replaced = parent.replaced.clone();
        child.space = parent.space.clone();
        child.unprepared.clone_from(&parent.unprepared);
        child.jit = parent.jit.for_child();
        child.has_unknown_code = parent.has_unknown_code;
        child.lacks_mappings = parent.lacks_mappings;
        child.in_family = parent.in_family;
        child.add_thread(tid, &parent.name, now);
        self.processes.insert(pid, child)
    }

    /// A thread took a name, or its process became another program.
    pub(crate) fn name(&mut self, pid: Pid, tid: Tid, name: &str, exec: bool, now: Timestamp) {
        let process = self.process(pid, now);
        name.clone_into(&mut process.thread(tid, now).name);
        if exec {
            process.arguments.clear();
            process.words.clear();
            process.unmap_all();
            process.jit = ProcessJit::default();
            process.became_another_program = true;
            process.has_unknown_code = false;
            process.lacks_mappings = false;
            process.name_may_be_cut = name.len() >= MAX_COMM;
        }
        if tid.0 == pid.0 {
            process.name = process.name_after(name, exec).to_owned();
        }
    }

    /// A thread ended; with the last one, its process. What is known of them stays until the number is used
    /// again: the count of what they have used can come later. What it had mapped stays until some others have ended: the kernel goes on
    /// with a thread for a while after it has told of its end, and samples it.
    pub(crate) fn exit(&mut self, pid: Pid, tid: Tid, now: Timestamp) {
        if !self.processes.get_mut(&pid).is_some_and(|process| process.end_thread(tid, now)) {
            return;
        }
        self.ended.push_back(pid);
        if self.ended.len() > MAPPED_AFTER_END
            && let Some(before) = self.ended.pop_front()
            && let Some(process) = self.processes.get_mut(&before).filter(|process| process.end.is_some())
        {
            process.unmap_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MappedFile;
    use nyquist_object::FileOffset;

    const NOW: Timestamp = Timestamp(1);

    fn map(tracker: &mut Tracker, pid: u32, path: &str) {
        let mapping = Mapping {
            pid: Some(Pid(pid)),
            start: Avma(0x1000),
            len: 0x1000,
            offset: FileOffset(0),
            path: path.into(),
            identity: MappedFile::Unknown,
        };
        tracker.map(&mapping, NOW, &mut ModuleStore::default());
    }

    fn is_mapped(tracker: &mut Tracker, pid: u32) -> bool {
        tracker.process(Pid(pid), NOW).find(Avma(0x1800)).is_some()
    }

    #[test]
    fn a_child_has_its_parents_mappings_until_it_becomes_another_program() {
        let mut tracker = Tracker::default();
        map(&mut tracker, 1, "//anon");
        tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), NOW);
        assert!(is_mapped(&mut tracker, 2));
        tracker.name(Pid(2), Tid(2), "ls", true, NOW);
        assert!(!is_mapped(&mut tracker, 2));
        assert!(is_mapped(&mut tracker, 1));
        assert_eq!(tracker.process(Pid(2), NOW).name, "ls");
    }

    #[test]
    fn a_process_without_a_stack_is_between_programs_unless_a_fault_brought_it_to_the_kernel() {
        let mut tracker = Tracker::default();
        map(&mut tracker, 1, "//anon");
        tracker.name(Pid(2), Tid(2), "ls", true, NOW);
        let registers = |rcx: u64| {
            let mut values = [0; 17];
            (values[2], values[16]) = (rcx, 0x1800);
            unwind::Registers::X86_64(values)
        };
        let mut check = |pid: u32, rcx: u64, stack: &[u8]| {
            tracker.process(Pid(pid), NOW).is_between_programs(&registers(rcx), stack)
        };
        assert!(check(1, 0x1800, &[]), "of exec, before its event");
        assert!(!check(1, 0x1800, &[1; 8]), "of a system call");
        assert!(!check(1, 7, &[]), "of a fault at the stack pointer");
        assert!(check(2, 7, &[1; 8]), "of exec, after its event");
        let [arm, partial] = [
            unwind::Registers::Aarch64([0; 33]),
            unwind::Registers::X86_64Partial { values: [1; 17], known: 1 << 16 | 1 << 7 },
        ];
        assert!(arm.may_be_of_system_call() && partial.may_be_of_system_call());
    }

    #[test]
    fn a_thread_renames_itself_and_not_its_process() {
        let mut tracker = Tracker::default();
        tracker.name(Pid(1), Tid(1), "server", true, NOW);
        tracker.fork(Pid(1), Tid(5), (Pid(1), Tid(1)), NOW);
        assert_eq!(tracker.process(Pid(1), NOW).thread(Tid(5), NOW).name, "server");
        tracker.name(Pid(1), Tid(5), "worker", false, NOW);
        assert_eq!(tracker.process(Pid(1), NOW).thread(Tid(5), NOW).name, "worker");
        assert_eq!(tracker.process(Pid(1), NOW).name, "server");
    }

    #[test]
    fn a_program_keeps_its_name_when_its_main_thread_takes_another() {
        let mut tracker = Tracker::default();
        tracker.name(Pid(1), Tid(1), "node", true, NOW);
        tracker.name(Pid(1), Tid(1), "MainThread", false, NOW);
        let process = tracker.process(Pid(1), NOW);
        assert_eq!((&*process.name, &*process.threads[&Tid(1)].name), ("node", "MainThread"));
        // One that was forked, and is no program of its own, is what it calls itself.
        tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), NOW);
        tracker.name(Pid(2), Tid(2), "helper", false, NOW);
        assert_eq!(tracker.process(Pid(2), NOW).name, "helper");
    }

    #[test]
    fn the_program_file_completes_a_name_that_the_kernel_cut() {
        let mut tracker = Tracker::default();
        tracker.name(Pid(1), Tid(1), "a-program-with-a", true, NOW);
        map(&mut tracker, 1, "/bin/a-program-with-a-long-name");
        map(&mut tracker, 1, "/bin/a-program-with-a-long-name-and-more");
        assert_eq!(tracker.process(Pid(1), NOW).name, "a-program-with-a-long-name");
    }

    #[test]
    fn cpu_time_counts_from_zero_on_each_cpu() {
        let mut thread = Thread::new("", NOW);
        let mut delta = |cpu, total| thread.cpu_delta(Some(cpu), total, NOW).ns;
        assert_eq!([delta(0, 10), delta(1, 4), delta(0, 15), delta(1, 4), delta(0, 2)], [10, 4, 5, 0, 0]);
        assert_eq!(thread.cpu_delta(None, 25, NOW).ns, 6, "the sum of all CPUs stands beside them");
        assert_eq!(thread.cpu_delta(None, 25, NOW).ns, 0);
    }

    #[test]
    fn what_takes_over_counts_from_zero_and_beside_what_was_before() {
        let mut thread = Thread::new("", NOW);
        assert_eq!(thread.cpu_delta(Some(0), 10, NOW).ns, 10);
        let deltas = [(0, 4), (1, 3), (0, 9)].map(|(cpu, ns)| thread.later_cpu_delta(Some(cpu), ns, NOW).ns);
        assert_eq!(deltas, [4, 3, 5]);
        assert_eq!(thread.cpu_delta(Some(0), 21, NOW).ns, 2, "before the one and after the other");
        assert_eq!(thread.cpu_delta(None, 30, NOW).ns, 6);
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut tracker = Tracker::default();
        let process = Pid(1);
        tracker.name(process, Tid(1), "server", true, NOW);
        for tid in [5, 6, 5] {
            tracker.fork(process, Tid(tid), (process, Tid(1)), NOW);
        }
        for (tid, time) in [(5, 7), (5, 8), (1, 9), (77, 10)] {
            tracker.exit(process, Tid(tid), Timestamp(time));
            assert_eq!(tracker.process(process, NOW).end, None, "after {tid}");
        }
        tracker.fork(process, Tid(5), (process, Tid(6)), NOW);
        tracker.exit(process, Tid(6), Timestamp(11));
        assert_eq!(tracker.process(process, NOW).end, None);
        tracker.exit(process, Tid(5), Timestamp(12));
        assert_eq!(tracker.process(process, NOW).end, Some(Timestamp(12)));
    }

    #[test]
    fn what_a_process_had_mapped_is_known_a_while_after_its_end() {
        let mut tracker = Tracker::default();
        for pid in 1..=MAPPED_AFTER_END as u32 + 2 {
            tracker.name(Pid(pid), Tid(pid), "short", true, NOW);
            map(&mut tracker, pid, "//anon");
            tracker.exit(Pid(pid), Tid(pid), NOW);
            assert!(is_mapped(&mut tracker, pid));
            // The number of the second one is used again at once.
            if pid == 2 {
                tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), NOW);
            }
        }
        assert_eq!([1, 2, 3].map(|pid| is_mapped(&mut tracker, pid)), [false, true, true]);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut tracker = Tracker::default();
        tracker.name(Pid(2), Tid(2), "first", true, NOW);
        tracker.exit(Pid(2), Tid(2), Timestamp(7));
        assert_eq!(tracker.process(Pid(2), NOW).end, Some(Timestamp(7)));
        let first = tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), Timestamp(9)).unwrap();
        assert_eq!(first.name, "first");
        assert_eq!(tracker.process(Pid(2), NOW).end, None);
        assert_eq!(tracker.process(Pid(2), NOW).start, Timestamp(9));
    }
}
