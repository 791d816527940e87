//! One process: its name, its row, its threads and its code.

use super::arguments::Arguments;
use super::code::ProcessCode;
use super::program_arguments::CommandLine;
use super::remainder::ProcessRemainder;
use super::thread::Thread;
use crate::event::{Mapping, Pid, Tid, Timestamp};
use crate::modules::store::ModuleStore;
use nyquist_profile::ProcessIndex;
use nyquist_resources::{Budget, Charge};
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
    /// What is mapped where.
    pub(crate) code: ProcessCode,
    /// How many of the threads have not ended. For a server that has had a hundred thousand threads, counting
    /// them at each end would dominate.
    live: usize,
    /// What the records of the process and its threads take of the budget, until it has a row. The mappings
    /// charge their memory themselves, because processes share it.
    charge: Charge,
    /// Whether it was born from another known process.
    was_forked: bool,
    /// Whether the name may still be the one that the kernel truncated to 15 bytes.
    name_may_be_cut: bool,
    /// Whether it is one of the requested processes, or was born from one.
    pub(crate) in_family: bool,
}

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
            code: ProcessCode::new(budget),
            live: 0,
            charge,
            was_forked: false,
            name_may_be_cut: false,
            in_family: false,
        }
    }

    /// The process that is born from this one. It has a copy of this memory, and no thread yet.
    pub(super) fn child(&self, now: Timestamp) -> Self {
        let mut child = Self {
            was_forked: true,
            arguments: self.arguments.clone(),
            words: self.words.clone(),
            code: self.code.for_child(),
            in_family: self.in_family,
            ..Self::new(&self.name, now, self.charge.budget())
        };
        let words: usize = child.words.iter().map(|word| size_of::<String>() + word.len()).sum();
        child.charge.add((words + child.code.bytes()) as u64);
        child
    }

    /// Handles `exec`: the process only has the mappings that are reported from now on.
    pub(super) fn become_another_program(&mut self, name: &str) {
        self.arguments = Arguments::default();
        self.words.clear();
        self.code.become_another_program();
        self.name_may_be_cut = name.len() >= MAX_COMM;
    }

    /// The process's name when its main thread takes a name. A program keeps its own name, even if it renames
    /// its main thread.
    pub(crate) fn name_after<'a>(&'a self, name: &'a str, exec: bool) -> &'a str {
        if exec || !self.code.is_of_another_program() { name } else { &self.name }
    }

    /// Sets the program's arguments. `own_name` is the name of the main thread.
    pub(crate) fn set_command_line(&mut self, line: CommandLine, own_name: &str) {
        // A forked child without its own program keeps the name that it gives itself.
        if !self.code.is_of_another_program() && !self.was_forked {
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

    /// Whether any thread of the process lives.
    pub(crate) fn has_live_thread(&self) -> bool {
        self.threads.values().any(|thread| thread.end.is_none())
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
            self.code.release_instructions();
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

    /// Adds a mapping. The first one of a program completes its name.
    pub(super) fn map(&mut self, mapping: &Mapping, modules: &mut ModuleStore) {
        self.complete_name(&mapping.path);
        self.code.map(mapping, modules);
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
