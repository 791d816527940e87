//! What sampling by suspending threads needs of macOS.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use nyquist_convert::event::{MappedFile, Registers};

use super::copies;
use super::listing::Listing;
use super::process::file_name;
use super::pure::images::{self, ListedImage};
use super::pure::refusal::{self, Facts};
use super::sys::port::Port;
use super::sys::queue::Flag;
use super::sys::thread::ThreadRegisters;
use super::sys::{clock, memory, process, task, thread};
use crate::suspend::system::{ListedProcess, ListedThread, LoadedModule, Refusal, StoppedRegisters, System};

/// The steps in which the system's times of threads advance: they are in microseconds.
const CLOCK_STEP_NS: u64 = 1000;
/// The library whose code makes system calls.
const CALLING_LIBRARY: &str = "/usr/lib/system/libsystem_kernel.dylib";
/// The size of an instruction that makes a system call, with what is read before it.
const CALL: usize = 4;

/// macOS.
#[derive(Debug)]
pub(crate) struct MacOs {
    listing: Listing,
    stop: Arc<Flag>,
    /// The threads that the last listing has found, by their numbers.
    threads: HashMap<u32, Port>,
}

/// A process that is sampled.
#[derive(Debug)]
pub(crate) struct Sampled {
    pid: u32,
    began: u64,
    /// Its task. The process gets another one when it executes another program.
    task: RefCell<Arc<Port>>,
    /// Whether its task has become another one since that was last asked, or why that one is refused.
    has_new_program: RefCell<Result<bool, Refusal>>,
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
        Ok(Self { listing: Listing::default(), stop, threads: HashMap::new() })
    }
}

impl Sampled {
    fn task(&self) -> Arc<Port> {
        Arc::clone(&self.task.borrow())
    }

    /// The threads of its task. If the task is gone and the process lives, the process executes another program,
    /// whose task is opened.
    fn threads(&self) -> Vec<Port> {
        if let Some(threads) = task::threads(&self.task()) {
            return threads;
        }
        match open_task(self.pid) {
            Ok((began, task)) if began == self.began => {
                let threads = task::threads(&task).unwrap_or_default();
                self.task.replace(Arc::new(task));
                *self.has_new_program.borrow_mut() = Ok(true);
                threads
            }
            Err(refusal @ Refusal::Refused { .. }) => {
                *self.has_new_program.borrow_mut() = Err(refusal);
                Vec::new()
            }
            // It has ended.
            Ok(_) | Err(Refusal::Gone) => Vec::new(),
        }
    }

    /// Reads its memory: all of the bytes, or none.
    fn reader(&self) -> impl Fn(u64, &mut [u8]) -> bool + use<> {
        let task = self.task();
        move |address, out| memory::read(&task, address, out) == out.len()
    }
}

impl System for MacOs {
    type Process = Sampled;
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
        self.listing.refresh(out);
        true
    }

    fn list_threads(&mut self, _: u32, process: &Sampled, out: &mut Vec<ListedThread>) {
        for port in process.threads() {
            let Some(id) = thread::id(&port) else { continue };
            // Numbers count up from the system's start, and 32 bits of them are enough to tell threads apart.
            let tid = id as u32;
            out.push(ListedThread { tid, began: id, turns: 0, is_active: false });
            self.threads.insert(tid, port);
        }
    }

    fn has_new_program(&mut self, process: &Sampled) -> Result<bool, Refusal> {
        process.has_new_program.replace(Ok(false))
    }

    /// The path and the signature of its program. They change when it executes another one.
    fn program_stamp(&mut self, pid: u32) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        (process::path(pid)?, process::code_flags(pid)).hash(&mut hasher);
        Some(hasher.finish())
    }

    fn open_process(&mut self, pid: u32) -> Result<Sampled, Refusal> {
        let known = process::known(pid).filter(|known| !known.has_ended).ok_or(Refusal::Gone)?;
        // Its children may be sampled, even if it may not.
        self.listing.follow(pid, known.began);
        if process::known(std::process::id()).is_some_and(|own| own.is_translated) {
            return Err(refusal::of_translated_nyquist());
        }
        let (began, task) = open_task(pid)?;
        let has_new_program = RefCell::new(Ok(false));
        Ok(Sampled { pid, began, task: RefCell::new(Arc::new(task)), has_new_program })
    }

    fn process_name(&mut self, process: &Sampled) -> Option<String> {
        let path = copies::original(process::path(process.pid)?);
        let name = file_name(&path);
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn has_ended(&mut self, process: &Sampled) -> bool {
        process::known(process.pid).is_none_or(|known| known.has_ended || known.began != process.began)
    }

    fn modules(
        &mut self,
        process: &Sampled,
        known: &dyn Fn(u64) -> bool,
    ) -> Option<(Vec<u64>, Vec<LoadedModule>)> {
        let read = process.reader();
        let images = images::list(&read, task::image_list(&process.task())?)?;
        let starts: Vec<u64> = images.iter().map(|image| image.start).collect();
        let new = images.iter().filter(|image| !known(image.start));
        let new = new.filter_map(|image| loaded_module(image, &read)).collect();
        (!starts.is_empty()).then_some((starts, new))
    }

    fn open_thread(&mut self, _: &Sampled, tid: u32) -> Option<SampledThread> {
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

    fn stack(&mut self, process: &Sampled, _: &SampledThread, pointer: u64) -> Option<Range<u64>> {
        memory::region(&process.task.borrow(), pointer)
    }

    fn suspend(&mut self, thread: &SampledThread) -> bool {
        thread::suspend(&thread.port)
    }

    fn registers(&mut self, thread: &SampledThread) -> Option<ThreadRegisters> {
        ThreadRegisters::read(&thread.port)
    }

    fn read_memory(&mut self, process: &Sampled, address: u64, out: &mut [u8]) -> usize {
        memory::read(&process.task.borrow(), address, out)
    }

    fn resume(&mut self, thread: &SampledThread) {
        thread::resume(&thread.port);
    }

    fn is_at_call(&mut self, process: &Sampled, instruction_pointer: u64) -> bool {
        let mut before = [0; CALL];
        let Some(at) = instruction_pointer.checked_sub(CALL as u64) else { return false };
        memory::read(&process.task.borrow(), at, &mut before) == before.len() && ends_with_call(before)
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

/// The task of a process, and when the process was started.
fn open_task(pid: u32) -> Result<(u64, Port), Refusal> {
    let known = process::known(pid).filter(|known| !known.has_ended).ok_or(Refusal::Gone)?;
    if known.is_translated || !known.has_64_bits {
        return Err(refusal::of_other_code(pid, known.is_translated));
    }
    match task::of_process(pid) {
        Some(task) => Ok((known.began, task)),
        None if super::process_has_ended(pid) => Err(Refusal::Gone),
        None => Err(refusal::of_process(pid, &facts(pid))),
    }
}

/// What is known of a process that may not be sampled.
pub(super) fn facts(pid: u32) -> Facts {
    Facts { path: process::path(pid).map(copies::original), code_flags: process::code_flags(pid) }
}

/// Describes an image.
fn loaded_module(image: &ListedImage, read: images::Read<'_>) -> Option<LoadedModule> {
    let path = copies::original(image.path(read)?);
    let header = image.header(read)?;
    Some(LoadedModule {
        start: image.start,
        len: header.text_len,
        makes_calls: path == CALLING_LIBRARY,
        identity: header.uuid.map_or(MappedFile::Unknown, MappedFile::MachO),
        path,
    })
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
