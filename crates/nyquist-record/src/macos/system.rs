//! Implements what sampling by suspending threads needs, for macOS.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::{fs, io};

use nyquist_convert::event::Registers;

use super::pure::denied::ProgramFacts;
use super::pure::listing::{ProcessListing, ProcessTree};
use super::pure::names::file_name;
use super::pure::opening::{self, OpenedProcess, TaskCalls};
use super::pure::process_status::ProcessStatus;
use super::pure::{copies, modules};
use super::sys::port::Port;
use super::sys::queue::Flag;
use super::sys::thread::ThreadRegisters;
use super::sys::{clock, memory, process, task, thread};
use crate::suspend::system::{
    ImageEnd, ListedImage, ListedProcess, ListedThread, LoadedModule, SamplingDenied, StoppedRegisters,
    System,
};

/// The steps in which the system's times of threads advance: they are in microseconds.
const CLOCK_STEP_NS: u64 = 1000;
/// The size of an instruction that makes a system call, with what is read before it.
const CALL: usize = 4;

/// macOS.
#[derive(Debug)]
pub(crate) struct MacOs {
    listing: ProcessListing,
    stop: Arc<Flag>,
    /// The threads that the last listing has found, by their numbers.
    threads: HashMap<u32, Port>,
}

/// A thread that is sampled.
#[derive(Debug)]
pub(crate) struct SampledThread {
    port: Port,
    /// Whether it ran when its CPU time was last read.
    was_active: Cell<bool>,
}

impl MacOs {
    /// Prepares for sampling until the flag is set.
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
    pub(crate) fn new(stop: Arc<Flag>) -> io::Result<Self> {
        Ok(Self { listing: ProcessListing::default(), stop, threads: HashMap::new() })
    }
}

/// Reads the memory of a process: all of the bytes, or none.
fn reader(process: &OpenedProcess<Port>) -> impl Fn(u64, &mut [u8]) -> bool + use<> {
    let task = process.task();
    move |address, out| memory::read(&task, address, out) == out.len()
}

/// The system's calls for processes and tasks.
struct SystemCalls;

impl TaskCalls for SystemCalls {
    type Task = Port;
    type Thread = Port;

    fn known(&self, pid: u32) -> Option<ProcessStatus> {
        process::known(pid)
    }

    fn task(&self, pid: u32) -> Option<Port> {
        task::of_process(pid)
    }

    fn threads(&self, task: &Port) -> Option<Vec<Port>> {
        task::threads(task)
    }

    fn facts(&self, pid: u32) -> ProgramFacts {
        facts(pid)
    }
}

impl ProcessTree for SystemCalls {
    fn known(&self, pid: u32) -> Option<ProcessStatus> {
        process::known(pid)
    }

    fn children(&self, pid: u32) -> Vec<u32> {
        process::children(pid)
    }
}

impl System for MacOs {
    type Process = OpenedProcess<Port>;
    type Thread = SampledThread;
    type Registers = ThreadRegisters;

    fn now(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait_until(&mut self, time_ns: u64) -> bool {
        self.stop.wait(time_ns.saturating_sub(clock::monotonic_ns()))
    }

    fn list_processes(&mut self, out: &mut Vec<ListedProcess>) -> bool {
        self.threads.clear();
        self.listing.refresh(&SystemCalls, out);
        true
    }

    fn list_threads(&mut self, _: u32, process: &OpenedProcess<Port>, out: &mut Vec<ListedThread>) {
        for port in process.threads(&SystemCalls) {
            let Some(id) = thread::id(&port) else { continue };
            // Numbers count up from the system's start, and 32 bits of them are enough to tell threads apart.
            let tid = id as u32;
            out.push(ListedThread { tid, began: id, turns: 0, is_active: false });
            self.threads.insert(tid, port);
        }
    }

    fn has_new_program(&mut self, process: &OpenedProcess<Port>) -> Result<bool, SamplingDenied> {
        process.take_new_program()
    }

    /// The path and the signature of its program. They change when it executes another one.
    fn program_stamp(&mut self, pid: u32) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        (process::path(pid)?, process::code_flags(pid)).hash(&mut hasher);
        Some(hasher.finish())
    }

    fn open_process(&mut self, pid: u32) -> Result<OpenedProcess<Port>, SamplingDenied> {
        // Its children may be sampled, even if it may not.
        self.listing.follow(pid, opening::live(&SystemCalls, pid)?.began);
        opening::open(&SystemCalls, std::process::id(), pid)
    }

    fn process_name(&mut self, process: &OpenedProcess<Port>) -> Option<String> {
        let path = copies::original(process::path(process.pid)?);
        let name = file_name(&path);
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn has_ended(&mut self, process: &OpenedProcess<Port>) -> bool {
        process.has_ended(&SystemCalls)
    }

    fn modules(
        &mut self,
        process: &OpenedProcess<Port>,
        known: &dyn Fn(ListedImage) -> bool,
    ) -> Option<(Vec<ListedImage>, Vec<LoadedModule>)> {
        let list_at = task::image_list(&process.task())?;
        modules::loaded(&reader(process), list_at, known, copies::original)
    }

    fn made_code(&mut self, process: &OpenedProcess<Port>, image_end: ImageEnd<'_>) -> Vec<Range<u64>> {
        memory::executable_regions(&process.task(), image_end)
    }

    fn open_thread(&mut self, _: &OpenedProcess<Port>, tid: u32) -> Option<SampledThread> {
        let port = self.threads.remove(&tid)?;
        Some(SampledThread { port, was_active: Cell::new(true) })
    }

    fn thread_name(&mut self, thread: &SampledThread) -> Option<String> {
        thread::name(&thread.port)
    }

    fn cpu_time_ns(&mut self, thread: &SampledThread) -> Option<u64> {
        let used = thread::used(&thread.port)?;
        thread.was_active.set(used.is_running);
        Some(used.cpu_ns)
    }

    fn was_active(&self, thread: &SampledThread) -> bool {
        thread.was_active.get()
    }

    fn cpu_clock_step_ns(&self) -> u64 {
        CLOCK_STEP_NS
    }

    fn stack(
        &mut self,
        process: &OpenedProcess<Port>,
        _: &SampledThread,
        pointer: u64,
    ) -> Option<Range<u64>> {
        memory::region(&process.task(), pointer)
    }

    fn suspend(&mut self, thread: &SampledThread) -> bool {
        thread::suspend(&thread.port)
    }

    fn registers(&mut self, thread: &SampledThread) -> Option<ThreadRegisters> {
        ThreadRegisters::read(&thread.port)
    }

    fn read_memory(&mut self, process: &OpenedProcess<Port>, address: u64, out: &mut [u8]) -> usize {
        memory::read(&process.task(), address, out)
    }

    fn resume(&mut self, thread: &SampledThread) {
        thread::resume(&thread.port);
    }

    fn is_at_call(&mut self, process: &OpenedProcess<Port>, instruction_pointer: u64) -> bool {
        let mut before = [0; CALL];
        let Some(at) = instruction_pointer.checked_sub(CALL as u64) else { return false };
        memory::read(&process.task(), at, &mut before) == before.len() && ends_with_call(before)
    }
}

impl StoppedRegisters for ThreadRegisters {
    fn instruction_pointer(&self) -> u64 {
        self.instruction_pointer()
    }

    fn stack_pointer(&self) -> u64 {
        self.stack_pointer()
    }

    fn event_registers(&self) -> Registers {
        self.event_registers()
    }
}

/// Whether code ends with the instruction that makes a system call (`syscall`).
#[cfg(target_arch = "x86_64")]
fn ends_with_call(code: [u8; CALL]) -> bool {
    code.ends_with(&[0x0f, 0x05])
}

/// Whether code is the instruction that makes a system call (`svc`).
#[cfg(target_arch = "aarch64")]
fn ends_with_call(code: [u8; CALL]) -> bool {
    u32::from_le_bytes(code) & 0xffe0_001f == 0xd400_0001
}

/// What is known of a process that may not be sampled.
pub(super) fn facts(pid: u32) -> ProgramFacts {
    let path = process::path(pid).map(copies::original);
    let mode = path.as_deref().and_then(|path| fs::metadata(path).ok()).map(|file| file.mode());
    ProgramFacts { path, code_flags: process::code_flags(pid), mode }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described() {
        let mut system = MacOs::new(Arc::new(Flag::new().unwrap())).unwrap();
        let own = system.open_process(std::process::id()).unwrap();
        let (starts, modules) = system.modules(&own, &|_| false).unwrap();
        assert_eq!(starts.len(), modules.len());
        assert!(modules.iter().any(|module| module.makes_calls));
        let mut threads = Vec::new();
        system.list_threads(std::process::id(), &own, &mut threads);
        assert!(threads.len() >= 2, "the main thread, and that of the test");
        assert!(!system.has_ended(&own) && system.has_new_program(&own) == Ok(false));
    }
}
