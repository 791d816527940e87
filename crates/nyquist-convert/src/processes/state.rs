//! The state of processes: their names, their mappings, and the code that they generate.

use super::code_finder::CodeFinder;
use super::process::Process;
use super::program_arguments::{CommandLine, ProgramArguments};
use super::thread::Thread;
use super::tracker::Tracker;
use crate::event::{Event, EventKind, Mapping, Pid, RELEASED_TID, Sample, Tid, Timestamp};
use crate::files::opened::user_of;
use crate::jit::dumps::{DumpIndex, JitDumps};
use crate::mappings::Range;
use crate::module_index::ModuleIndex;
use crate::modules::jitdump;
use crate::modules::lib_source::LibSource;
use crate::modules::mapping_kind::may_be_made_code;
use crate::modules::store::ModuleStore;
use crate::targets::Targets;
use nyquist_object::Avma;
use nyquist_resources::Budget;
use rustc_hash::FxHashMap;

/// The state of processes, and of the files and the generated code that are mapped in them.
#[derive(Debug)]
pub(crate) struct ProcessState {
    tracker: Tracker,
    modules: ModuleStore,
    dumps: JitDumps,
    program_arguments: ProgramArguments,
    /// The users of processes that may generate code.
    users: FxHashMap<Pid, u32>,
    /// The thread that has ended last on each CPU.
    last_exits: FxHashMap<u32, (Pid, Tid)>,
}

impl ProcessState {
    /// No processes. What is mapped in them becomes part of these modules and jitdumps, and their programs'
    /// arguments are read by `program_arguments`. What is kept of processes beside the profile takes about as
    /// much memory as the budget has.
    pub(crate) fn new(
        (modules, dumps): (ModuleStore, JitDumps),
        program_arguments: ProgramArguments,
        budget: Budget,
    ) -> Self {
        Self {
            tracker: Tracker::new(budget),
            modules,
            dumps,
            program_arguments,
            users: FxHashMap::default(),
            last_exits: FxHashMap::default(),
        }
    }

    /// A process, which begins now if it was not known.
    pub(crate) fn process(&mut self, pid: Pid, now: Timestamp) -> &mut Process {
        self.tracker.process(pid, now)
    }

    /// A thread, which begins now if it was not known.
    pub(crate) fn thread(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) -> &mut Thread {
        self.process(pid, now).thread(tid, now)
    }

    /// A known thread that has not ended.
    pub(crate) fn live_thread(&self, (pid, tid): (Pid, Tid)) -> Option<&Thread> {
        self.tracker.live_thread(pid, tid)
    }

    /// The process of a living thread.
    pub(crate) fn process_of(&self, tid: Tid) -> Option<Pid> {
        self.tracker.process_of(tid)
    }

    /// A thread by its name and number. It may have ended, because the end of a thread wakes others.
    pub(crate) fn thread_label(&self, (pid, tid): (Pid, Tid)) -> String {
        let name = self.tracker.known_thread(pid, tid).map_or("", |thread| &thread.name);
        format!("{name} ({})", tid.0).trim_start().to_owned()
    }

    /// All processes.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> {
        self.tracker.processes().map(|(_, process)| process)
    }

    /// The end of a process that has ended.
    pub(crate) fn end_of(&self, pid: Pid) -> Option<Timestamp> {
        self.tracker.known_process(pid)?.end
    }

    /// The processes with CPU time that no sample stands for yet, in order.
    pub(crate) fn with_unsampled_time(&self) -> Vec<Pid> {
        let unsampled = self.tracker.processes().filter(|(_, process)| !process.unsampled.is_empty());
        let mut pids: Vec<_> = unsampled.map(|(pid, _)| *pid).collect();
        pids.sort_unstable();
        pids
    }

    /// The threads with unobserved waits, in order.
    pub(crate) fn threads_with_unseen_waits(&self) -> Vec<(Pid, Tid)> {
        self.tracker.threads_with_unseen_waits()
    }

    /// Reads what may be gone when the turn of an event comes: the file of a mapping, and the arguments of a
    /// program.
    pub(crate) fn look_ahead(&mut self, event: &Event) {
        if let EventKind::Map(mapping) = &event.kind {
            self.open_mapped(mapping);
        }
        self.program_arguments.note(event);
    }

    /// Opens a mapped file as soon as the mapping is reported, long before its event is converted. Until then
    /// the process may end, or the file may be removed.
    fn open_mapped(&mut self, mapping: &Mapping) {
        let user = self.user_of(mapping);
        jitdump::open(&mut self.dumps, mapping, user, &mut self.modules);
        self.modules.of_new_mapping(mapping);
    }

    /// Opens the file of a mapping whose event comes later, and compiles its unwind information, because
    /// another thread will need it soon.
    pub(crate) fn prepare_mapping(&mut self, mapping: &Mapping) {
        self.open_mapped(mapping);
        if mapping.pid.is_some() {
            self.modules.prepare(mapping);
        }
    }

    /// The user whose rights a process has that may generate code in its mappings. It is read at the first
    /// such mapping, because the process may have ended when the user is needed.
    fn user_of(&mut self, mapping: &Mapping) -> Option<u32> {
        let may_be_made = self.modules.are_live() && may_be_made_code(mapping);
        let pid = mapping.pid.filter(|_| may_be_made)?;
        if let Some(&user) = self.users.get(&pid) {
            return Some(user);
        }
        let user = user_of(pid)?;
        self.users.insert(pid, user);
        Some(user)
    }

    /// Adds a mapping.
    pub(crate) fn map(&mut self, mapping: &Mapping, now: Timestamp) {
        self.tracker.map(mapping, now, &mut self.modules);
        let Some(pid) = mapping.pid else { return };
        let user = self.user_of(mapping);
        if user.is_some() {
            self.process(pid, now).code.jit.user = user;
        }
        if let Some(dump) = jitdump::open(&mut self.dumps, mapping, user, &mut self.modules) {
            self.process(pid, now).code.jit.add_dump(dump);
        }
    }

    /// Part of an address space was unmapped.
    pub(crate) fn unmap(&mut self, pid: Pid, start: Avma, len: u64) {
        self.tracker.unmap(pid, start, len);
    }

    /// Code of the kernel appeared.
    pub(crate) fn map_kernel_code(&mut self, start: Avma, len: u64, name: &str) {
        let module = self.modules.add_kernel_code(start, len, name);
        self.tracker.map_kernel_code(start, len, module);
    }

    /// Code of the kernel was removed.
    pub(crate) fn unmap_kernel_code(&mut self, start: Avma, len: u64, name: &str) {
        self.modules.name_gone_kernel_code(start, len, name);
        self.tracker.unmap_kernel_code(start, len);
    }

    /// A thread that has ended, but still runs to its last instruction in the kernel, has no number any more.
    /// Its number is that of the thread of its process that ended last on its CPU, or on another CPU that it
    /// has left since. If no end of a thread of its process is known, the sample gets the number of the main
    /// thread. Returns whether the process is known.
    pub(crate) fn replace_released_tid(&self, sample: &mut Sample, cpu: Option<u32>) -> bool {
        if sample.tid != RELEASED_TID {
            return true;
        }
        let has_no_pid = sample.pid.0 == RELEASED_TID.0;
        let here = cpu.and_then(|cpu| self.last_exits.get(&cpu));
        let elsewhere = self.last_exits.values().filter(|_| !has_no_pid);
        let mut ended = here.into_iter().chain(elsewhere).filter(|(pid, _)| has_no_pid || *pid == sample.pid);
        match ended.next() {
            Some((pid, tid)) => (sample.pid, sample.tid) = (*pid, *tid),
            None => sample.tid = Tid(sample.pid.0),
        }
        sample.tid != RELEASED_TID
    }

    /// Notes that records were lost, some of which may have been of mappings.
    pub(crate) fn lose_records(&mut self) {
        self.tracker.lose_records();
    }

    /// A thread was born. If the pid is reused, returns its former process.
    pub(crate) fn fork(&mut self, id: (Pid, Tid), parent: (Pid, Tid), now: Timestamp) -> Option<Process> {
        if id.0 != parent.0 {
            self.tracker.prepare_for_child(parent.0, &self.modules, &self.dumps);
        }
        self.tracker.fork(id.0, id.1, parent, now)
    }

    /// The command line of a program that takes a name now, if it is requested.
    pub(crate) fn take_command_line(&mut self, pid: Pid, now: Timestamp) -> Option<CommandLine> {
        self.program_arguments.take(pid, now)
    }

    /// A thread took a name, or its process became another program. The process's command line may be known.
    pub(crate) fn name(
        &mut self,
        (pid, tid): (Pid, Tid),
        (name, exec): (&str, bool),
        line: Option<CommandLine>,
        now: Timestamp,
    ) {
        self.tracker.name(pid, tid, name, exec, now);
        if let Some(line) = line {
            self.process(pid, now).set_command_line(line, name);
        }
    }

    /// A thread has ended. The files of its process's mappings are not opened any more, and samples without a
    /// number may be the thread's.
    pub(crate) fn exit(&mut self, (pid, tid): (Pid, Tid), cpu: Option<u32>, now: Timestamp) {
        self.tracker.exit(pid, tid, now);
        if pid.0 == tid.0 {
            self.modules.forget(pid);
        }
        if let Some(cpu) = cpu {
            self.last_exits.insert(cpu, (pid, tid));
        }
    }

    /// A process, and what its code is unwound with.
    pub(crate) fn for_unwinding(
        &mut self,
        pid: Pid,
        now: Timestamp,
    ) -> (&mut Process, &ModuleStore, &JitDumps) {
        (self.tracker.process(pid, now), &self.modules, &self.dumps)
    }

    /// Finds the code of a process at a time. Times must not go back.
    pub(crate) fn code_finder(&mut self, pid: Pid, now: Timestamp) -> CodeFinder<'_> {
        let process = self.tracker.process(pid, now);
        CodeFinder::new(process, (&mut self.modules, &mut self.dumps), (pid, now))
    }

    /// The range of the kernel's code at an address.
    pub(crate) fn find_kernel_code(&self, address: Avma) -> Option<Range> {
        self.tracker.find_kernel(address)
    }

    /// Reads what compilers have written to jitdumps since the last call.
    pub(crate) fn read_jitdumps(&mut self) {
        self.dumps.read_on();
    }

    /// The jitdumps of a process, if they are not yet written up to a time.
    pub(crate) fn unwritten_jitdumps(&mut self, pid: Pid, now: Timestamp) -> Option<Vec<DumpIndex>> {
        let dumps = &self.tracker.process(pid, now).code.jit.dumps;
        (!self.dumps.are_read_up_to(dumps, now)).then(|| dumps.clone())
    }

    /// Whether all code of these jitdumps that was made by `time` has been read.
    pub(crate) fn are_written_up_to(&self, dumps: &[DumpIndex], time: Timestamp) -> bool {
        self.dumps.are_read_up_to(dumps, time)
    }

    /// The code in these jitdumps that is at an address at a time. Times must not go back.
    pub(crate) fn find_in_jitdumps(
        &mut self,
        dumps: &[DumpIndex],
        address: Avma,
        time: Timestamp,
    ) -> Option<Range> {
        self.dumps.find(dumps, address, time)
    }

    /// The functions in jitdumps that were made before a time and were not returned yet: the process, the
    /// time, and the name as the compiler wrote it.
    pub(crate) fn take_new_functions(&mut self, before: Timestamp) -> Vec<(Pid, Timestamp, String)> {
        self.dumps.take_new_functions(before)
    }

    /// All files that were mapped.
    pub(crate) fn modules(&self) -> &ModuleStore {
        &self.modules
    }

    /// The same, when the processes are not needed any more.
    pub(crate) fn into_modules(self) -> ModuleStore {
        self.modules
    }

    /// Where the code and the symbols of a module come from.
    pub(crate) fn lib_source(&self, module: ModuleIndex) -> LibSource {
        self.modules.source(module, &self.dumps)
    }

    /// The same before the recording ends: only for opened files and for the kernel.
    pub(crate) fn early_lib_source(&self, module: ModuleIndex) -> Option<LibSource> {
        self.modules.early_source(module, &self.dumps)
    }

    /// Messages to the user about what is missing: mappings, arguments, perf maps and jitdumps.
    pub(crate) fn notes(&self) -> Vec<String> {
        for module in self.dumps.too_large() {
            let path = self.modules.get(module).lib().path;
            self.modules.notes.is_too_large("jitdump", path.as_ref(), self.modules.budget().most());
        }
        let of_processes = self.tracker.note().into_iter().chain(self.program_arguments.notes());
        let silent = self.modules.targets().map(Targets::sentences).unwrap_or_default();
        let of_files = self.modules.file_names_note().into_iter().chain(self.modules.notes.sentences());
        of_processes.chain(of_files).chain(silent).collect()
    }
}
