//! The track stage: the processes and threads, their names, and their mappings. A pid that is reused becomes a
//! new process in `fork`.

use super::memory::MemoryLimit;
use super::process::Process;
use super::thread::Thread;
use crate::event::{Mapping, Pid, Tid, Timestamp};
use crate::jit::dumps::JitDumps;
use crate::mappings::{Mappings, Range};
use crate::module_index::ModuleIndex;
use crate::modules::store::ModuleStore;
use nyquist_object::Avma;
use nyquist_resources::Budget;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How many ended processes keep their mappings.
const MAPPED_AFTER_END: usize = 64;

/// The state of living processes, and of those that have just ended.
#[derive(Debug)]
pub(crate) struct Tracker {
    limit: MemoryLimit,
    processes: FxHashMap<Pid, Box<Process>>,
    kernel: Mappings,
    /// The processes that have ended last, the latest at the end.
    ended: VecDeque<Pid>,
}

impl Tracker {
    /// No processes. What is kept of them beside the profile takes about as much memory as this budget has.
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            kernel: Mappings::within(&budget),
            limit: MemoryLimit::new(budget),
            processes: FxHashMap::default(),
            ended: VecDeque::new(),
        }
    }

    /// A process, which begins now if it was not known.
    pub(crate) fn process(&mut self, pid: Pid, now: Timestamp) -> &mut Process {
        let budget = self.limit.budget();
        let unnamed = || Box::new(Process::new(&format!("<{}>", pid.0), now, budget));
        self.processes.entry(pid).or_insert_with(unnamed)
    }

    /// Makes room if the processes take too much memory.
    fn keep_within_limit(&mut self) {
        if !self.limit.is_exceeded() {
            return;
        }
        self.limit.make_room(&mut self.processes, &self.ended);
        if !self.limit.has_room() {
            self.kernel.clear();
        }
    }

    /// A message to the user, if mappings were dropped.
    pub(crate) fn note(&self) -> Option<String> {
        self.limit.note()
    }

    /// A known process, which may have ended.
    pub(crate) fn known_process(&self, pid: Pid) -> Option<&Process> {
        self.processes.get(&pid).map(|process| &**process)
    }

    /// A known thread, which may have ended.
    pub(crate) fn known_thread(&self, pid: Pid, tid: Tid) -> Option<&Thread> {
        self.processes.get(&pid)?.threads.get(&tid).map(|thread| &**thread)
    }

    /// A known thread that has not ended.
    pub(crate) fn live_thread(&self, pid: Pid, tid: Tid) -> Option<&Thread> {
        self.known_thread(pid, tid).filter(|thread| thread.end.is_none())
    }

    /// The range of the kernel's address space that holds an address.
    pub(crate) fn find_kernel(&self, address: Avma) -> Option<Range> {
        self.kernel.find(address)
    }

    /// The process of a living thread.
    pub(crate) fn process_of(&self, tid: Tid) -> Option<Pid> {
        self.processes.iter().find(|(_, process)| process.has_live(tid)).map(|(pid, _)| *pid)
    }

    /// All processes.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&Pid, &Process)> {
        self.processes.iter().map(|(pid, process)| (pid, &**process))
    }

    /// The threads with unobserved waits, in order.
    pub(crate) fn threads_with_unseen_waits(&self) -> Vec<(Pid, Tid)> {
        let processes = self.processes.iter();
        let threads = processes.flat_map(|(pid, process)| process.threads.iter().map(move |it| (*pid, it)));
        let unseen = threads.filter(|(_, (_, thread))| thread.unseen_waits.ns > 0);
        let mut threads: Vec<_> = unseen.map(|(pid, (tid, _))| (pid, *tid)).collect();
        threads.sort_unstable();
        threads
    }

    /// Something was mapped.
    pub(crate) fn map(&mut self, mapping: &Mapping, now: Timestamp, modules: &mut ModuleStore) {
        self.keep_within_limit();
        match mapping.pid {
            Some(pid) => self.process(pid, now).map(mapping, modules),
            None => {
                let end = Avma(mapping.start.0.saturating_add(mapping.len));
                let module =
                    modules.of_mapping(mapping).map(|index| (index, modules.get(index).base(mapping)));
                self.kernel.insert(Range { start: mapping.start, end, module }, 0);
            }
        }
    }

    /// Code of the kernel appeared.
    pub(crate) fn map_kernel_code(&mut self, start: Avma, len: u64, module: Option<(ModuleIndex, Avma)>) {
        self.kernel.insert(Range { start, end: Avma(start.0.saturating_add(len)), module }, 0);
    }

    /// Code of the kernel was removed.
    pub(crate) fn unmap_kernel_code(&mut self, start: Avma, len: u64) {
        self.kernel.remove(start, Avma(start.0.saturating_add(len)));
    }

    /// Part of an address space was unmapped.
    pub(crate) fn unmap(&mut self, pid: Pid, start: Avma, len: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.code.unmap(start, len);
        }
    }

    /// Notes that records were lost, some of which may have been of mappings.
    pub(crate) fn lose_records(&mut self) {
        self.processes.values_mut().for_each(|process| process.code.lose_records());
    }

    /// Prepares a process for a fork.
    pub(crate) fn prepare_for_child(&mut self, pid: Pid, modules: &ModuleStore, dumps: &JitDumps) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.code.prepare_for_child(modules, dumps);
        }
    }

    /// A thread was born. If the pid is reused, returns its former process.
    pub(crate) fn fork(&mut self, pid: Pid, tid: Tid, parent: (Pid, Tid), now: Timestamp) -> Option<Process> {
        self.keep_within_limit();
        let (parent_pid, parent_tid) = parent;
        if pid == parent_pid {
            let process = self.process(pid, now);
            let name = process.threads.get(&parent_tid).map_or(&process.name, |thread| &thread.name).clone();
            process.add_thread(tid, &name, now);
            return None;
        }
        let parent = self.process(parent_pid, now);
        let mut child = parent.child(now);
        child.add_thread(tid, &parent.name, now);
        self.processes.insert(pid, Box::new(child)).map(|former| *former)
    }

    /// A thread took a name, or its process became another program.
    pub(crate) fn name(&mut self, pid: Pid, tid: Tid, name: &str, exec: bool, now: Timestamp) {
        self.keep_within_limit();
        let process = self.process(pid, now);
        name.clone_into(&mut process.thread(tid, now).name);
        if exec {
            process.become_another_program(name);
        }
        if tid.0 == pid.0 {
            process.name = process.name_after(name, exec).to_owned();
        }
    }

    /// A thread ended. Its process ends with its last thread. Their state stays until the pid is reused,
    /// because their total CPU time can come later. The mappings stay until some other processes have ended,
    /// because the kernel runs and samples a thread for a while after it has reported the thread's end.
    pub(crate) fn exit(&mut self, pid: Pid, tid: Tid, now: Timestamp) {
        if !self.processes.get_mut(&pid).is_some_and(|process| process.end_thread(tid, now)) {
            return;
        }
        self.ended.push_back(pid);
        if self.ended.len() > MAPPED_AFTER_END
            && let Some(before) = self.ended.pop_front()
            && let Some(process) = self.processes.get_mut(&before).filter(|process| process.end.is_some())
        {
            process.code.unmap_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MappedFile;
    use nyquist_object::FileOffset;
    use nyquist_unwind as unwind;

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
        tracker.process(Pid(pid), NOW).code.find(Avma(0x1800)).is_some()
    }

    #[test]
    fn a_child_has_its_parents_mappings_until_exec() {
        let mut tracker = Tracker::new(Budget::default());
        map(&mut tracker, 1, "//anon");
        tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), NOW);
        assert!(is_mapped(&mut tracker, 2));
        tracker.name(Pid(2), Tid(2), "ls", true, NOW);
        assert!(!is_mapped(&mut tracker, 2));
        assert!(is_mapped(&mut tracker, 1));
        assert_eq!(tracker.process(Pid(2), NOW).name, "ls");
    }

    #[test]
    fn a_stackless_process_is_in_exec_or_at_a_fault() {
        let mut tracker = Tracker::new(Budget::default());
        map(&mut tracker, 1, "//anon");
        tracker.name(Pid(2), Tid(2), "ls", true, NOW);
        let registers = |rcx: u64| {
            let mut values = [0; 17];
            (values[2], values[16]) = (rcx, 0x1800);
            unwind::Registers::X86_64(values)
        };
        let mut check = |pid: u32, rcx: u64, stack: &[u8]| {
            tracker.process(Pid(pid), NOW).code.is_between_programs(&registers(rcx), stack)
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
        let mut tracker = Tracker::new(Budget::default());
        tracker.name(Pid(1), Tid(1), "server", true, NOW);
        tracker.fork(Pid(1), Tid(5), (Pid(1), Tid(1)), NOW);
        assert_eq!(tracker.process(Pid(1), NOW).thread(Tid(5), NOW).name, "server");
        tracker.name(Pid(1), Tid(5), "worker", false, NOW);
        assert_eq!(tracker.process(Pid(1), NOW).thread(Tid(5), NOW).name, "worker");
        assert_eq!(tracker.process(Pid(1), NOW).name, "server");
    }

    #[test]
    fn a_program_keeps_its_name_if_its_main_renames() {
        let mut tracker = Tracker::new(Budget::default());
        tracker.name(Pid(1), Tid(1), "node", true, NOW);
        tracker.name(Pid(1), Tid(1), "MainThread", false, NOW);
        let process = tracker.process(Pid(1), NOW);
        assert_eq!((&*process.name, &*process.threads[&Tid(1)].name), ("node", "MainThread"));
        // A forked process without its own program keeps the name that it gives itself.
        tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), NOW);
        tracker.name(Pid(2), Tid(2), "helper", false, NOW);
        assert_eq!(tracker.process(Pid(2), NOW).name, "helper");
    }

    #[test]
    fn the_program_file_completes_a_cut_name() {
        let mut tracker = Tracker::new(Budget::default());
        tracker.name(Pid(1), Tid(1), "a-program-with-a", true, NOW);
        map(&mut tracker, 1, "/bin/a-program-with-a-long-name");
        map(&mut tracker, 1, "/bin/a-program-with-a-long-name-and-more");
        assert_eq!(tracker.process(Pid(1), NOW).name, "a-program-with-a-long-name");
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut tracker = Tracker::new(Budget::default());
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
    fn mappings_are_known_a_while_after_the_end() {
        let mut tracker = Tracker::new(Budget::default());
        for pid in 1..=MAPPED_AFTER_END as u32 + 2 {
            tracker.name(Pid(pid), Tid(pid), "short", true, NOW);
            map(&mut tracker, pid, "//anon");
            tracker.exit(Pid(pid), Tid(pid), NOW);
            assert!(is_mapped(&mut tracker, pid));
            // The pid of the second process is reused at once.
            if pid == 2 {
                tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), NOW);
            }
        }
        assert_eq!([1, 2, 3].map(|pid| is_mapped(&mut tracker, pid)), [false, true, true]);
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut tracker = Tracker::new(Budget::default());
        tracker.name(Pid(2), Tid(2), "first", true, NOW);
        tracker.exit(Pid(2), Tid(2), Timestamp(7));
        assert_eq!(tracker.process(Pid(2), NOW).end, Some(Timestamp(7)));
        let first = tracker.fork(Pid(2), Tid(2), (Pid(1), Tid(1)), Timestamp(9)).unwrap();
        assert_eq!(first.name, "first");
        assert_eq!(tracker.process(Pid(2), NOW).end, None);
        assert_eq!(tracker.process(Pid(2), NOW).start, Timestamp(9));
    }

    /// Maps a range of one page at the page with this number.
    fn map_page(tracker: &mut Tracker, pid: u32, page: u64) {
        let mapping = Mapping {
            pid: Some(Pid(pid)),
            start: Avma(page << 12),
            len: 0x1000,
            offset: FileOffset(0),
            path: "//anon".into(),
            identity: MappedFile::Unknown,
        };
        tracker.map(&mapping, NOW, &mut ModuleStore::default());
    }

    fn mapped_pages(tracker: &mut Tracker, pid: u32) -> usize {
        tracker.process(Pid(pid), NOW).code.mapping_count()
    }

    #[test]
    fn children_that_change_little_share_the_rest() {
        let mut tracker = Tracker::new(Budget::default());
        (0..30_000).for_each(|page| map_page(&mut tracker, 1, 2 * page));
        let used = |tracker: &Tracker| tracker.limit.budget().used();
        let (modules, dumps) = (ModuleStore::default(), JitDumps::default());
        tracker.prepare_for_child(Pid(1), &modules, &dumps);
        let before = used(&tracker);
        for child in 2..1502 {
            tracker.fork(Pid(child), Tid(child), (Pid(1), Tid(1)), NOW);
            map_page(&mut tracker, child, 2 * u64::from(child));
            tracker.process(Pid(child), NOW).code.address_space(&modules, &dumps);
        }
        let each = (used(&tracker) - before) / 1500;
        assert!(each < 16_000, "{each} bytes for each child");
        assert!(tracker.note().is_none());
    }

    #[test]
    fn beyond_the_budget_the_largest_lose_mappings() {
        let mut tracker = Tracker::new(Budget::new(1 << 20));
        for (pid, pages) in [(1, 3), (2, 600), (3, 500), (4, 300)] {
            (0..pages).for_each(|page| map_page(&mut tracker, pid, 2 * page));
        }
        for sampled in [1, 2, 5] {
            tracker.process(Pid(sampled), NOW).index = Some(nyquist_profile::ProcessIndex::from_index(0));
        }
        // One process maps new memory as long as it is let.
        let mut page = 0;
        while !tracker.process(Pid(5), NOW).code.has_dropped_mappings() {
            map_page(&mut tracker, 5, 2 * page);
            page += 1;
            assert!(tracker.limit.budget().used() < (1 << 20) + 50_000);
        }
        // Those without samples go first, except if they are small; then the largest one goes.
        assert_eq!([1, 2, 3, 4, 5].map(|pid| mapped_pages(&mut tracker, pid)), [3, 600, 0, 0, 0]);
        map_page(&mut tracker, 5, 7);
        assert_eq!(mapped_pages(&mut tracker, 5), 0, "it gets no new ones");
        tracker.name(Pid(5), Tid(5), "another", true, NOW);
        map_page(&mut tracker, 5, 7);
        assert_eq!(mapped_pages(&mut tracker, 5), 1, "unless it is another program");
        let note = tracker.note().unwrap();
        assert!(note.starts_with("stacks are missing of process 3 (<3>) and 2 more: "), "{note}");
    }

    #[test]
    fn ended_ones_without_samples_are_forgotten() {
        let mut tracker = Tracker::new(Budget::new(1 << 20));
        for pid in 1..20_000 {
            tracker.fork(Pid(pid), Tid(pid), (Pid(0), Tid(0)), NOW);
            tracker.exit(Pid(pid), Tid(pid), NOW);
        }
        assert!(tracker.processes.len() < 2000, "{}", tracker.processes.len());
        assert!(tracker.limit.budget().used() < 1 << 20);
        assert!(tracker.note().is_none());
    }
}
