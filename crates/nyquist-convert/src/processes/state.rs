//! The state of processes: their names, their mappings, and the code that they generate.

use super::process::Process;
use super::program_arguments::ProgramArguments;
use super::thread::Thread;
use super::tracker::Tracker;
use crate::event::{Mapping, Pid, RELEASED_TID, Sample, Tid, Timestamp};
use crate::files::opened::user_of;
use crate::jit::dumps::JitDumps;
use crate::modules::jitdump;
use crate::modules::mapping_kind::may_be_made_code;
use crate::modules::store::ModuleStore;
use nyquist_object::Avma;
use rustc_hash::FxHashMap;

/// The state of processes, and of the files and the generated code that are mapped in them.
#[derive(Debug)]
pub(crate) struct ProcessState {
    pub(crate) tracker: Tracker,
    pub(crate) modules: ModuleStore,
    pub(crate) dumps: JitDumps,
    pub(crate) program_arguments: ProgramArguments,
    /// The users of processes that may generate code.
    users: FxHashMap<Pid, u32>,
    /// The thread that has ended last on each CPU.
    last_exits: FxHashMap<u32, (Pid, Tid)>,
}

impl ProcessState {
    /// No processes. What is mapped in them becomes part of these modules and jitdumps, and their programs'
    /// arguments are read by `program_arguments`.
    pub(crate) fn new(modules: ModuleStore, dumps: JitDumps, program_arguments: ProgramArguments) -> Self {
        Self {
            tracker: Tracker::default(),
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

    /// Opens a mapped file as soon as the mapping is reported, long before its event is converted. Until then
    /// the process may end, or the file may be removed.
    pub(crate) fn note_mapping(&mut self, mapping: &Mapping) {
        let user = self.user_of(mapping);
        jitdump::open(&mut self.dumps, mapping, user, &mut self.modules);
        self.modules.of_new_mapping(mapping);
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
            self.process(pid, now).jit.user = user;
        }
        if let Some(dump) = jitdump::open(&mut self.dumps, mapping, user, &mut self.modules) {
            self.process(pid, now).jit.dumps.push(dump);
        }
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

    /// A thread has ended. The files of its process's mappings are not opened any more, and samples without a
    /// number may be the thread's.
    pub(crate) fn note_exit(&mut self, (pid, tid): (Pid, Tid), cpu: Option<u32>) {
        if pid.0 == tid.0 {
            self.modules.forget(pid);
        }
        if let Some(cpu) = cpu {
            self.last_exits.insert(cpu, (pid, tid));
        }
    }

    /// Messages to the user about perf maps and jitdumps.
    pub(crate) fn side_file_notes(&self) -> Vec<String> {
        for module in self.dumps.too_large() {
            let path = self.modules.get(module).lib().path;
            self.modules.notes.is_too_large("jitdump", path.as_ref(), self.modules.budget().most());
        }
        self.modules.notes.sentences()
    }
}
